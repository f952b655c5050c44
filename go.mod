module github.com/cellard/cellard

go 1.24.0
