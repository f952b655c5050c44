// Package openapi holds docs/openapi.yaml against the server: it describes every route
// that is served and every field of protocol/api's types, and what a real agent answers
// is valid by it. It has only tests.
package openapi
