package mime

// byExtension has the registered types where there are ones, else those in
// common use. A file shown by a cell is text or base64 by IsBinary of its type.
var byExtension = map[string]string{
	// Text and data.
	"txt": "text/plain", "text": "text/plain", "log": "text/plain", "out": "text/plain", "err": "text/plain",
	"ini": "text/plain", "cfg": "text/plain", "conf": "text/plain", "env": "text/plain", "diff": "text/x-diff",
	"patch": "text/x-diff", "md": "text/markdown", "markdown": "text/markdown", "qmd": "text/markdown",
	"rmd": "text/markdown", "rst": "text/x-rst", "csv": "text/csv", "tsv": "text/tab-separated-values",
	"tab": "text/tab-separated-values", "html": "text/html", "htm": "text/html", "css": "text/css",
	"ics": "text/calendar", "vcf": "text/vcard", "vtt": "text/vtt", "srt": "application/x-subrip",
	"tex": "text/x-tex", "sty": "text/x-tex", "bib": "text/x-bibtex", "rtf": "application/rtf",
	"json": "application/json", "geojson": "application/geo+json", "topojson": "application/json",
	"jsonld": "application/ld+json", "ipynb": "application/x-ipynb+json", "webmanifest": "application/manifest+json",
	"ndjson": "application/x-ndjson", "jsonl": "application/x-ndjson", "xml": "application/xml",
	"xsl": "application/xml", "xsd": "application/xml", "xhtml": "application/xhtml+xml", "gpx": "application/gpx+xml",
	"kml": "application/vnd.google-earth.kml+xml", "rss": "application/rss+xml", "atom": "application/atom+xml",
	"graphml": "application/xml", "yaml": "application/yaml", "yml": "application/yaml", "toml": "application/toml",
	"sql": "application/sql", "dot": "text/vnd.graphviz", "gv": "text/vnd.graphviz", "mmd": "text/x-mermaid",

	// Source.
	"py": "text/x-python", "pyi": "text/x-python", "r": "text/x-r", "js": "text/javascript", "mjs": "text/javascript",
	"cjs": "text/javascript", "jsx": "text/javascript", "ts": "application/typescript", "tsx": "application/typescript",
	"sh": "text/x-sh", "bash": "text/x-sh", "zsh": "text/x-sh", "go": "text/x-go", "java": "text/x-java",
	"c": "text/x-c", "h": "text/x-c", "cc": "text/x-c++", "cpp": "text/x-c++", "hpp": "text/x-c++",
	"rs": "text/x-rust", "rb": "text/x-ruby", "pl": "text/x-perl", "php": "text/x-php", "lua": "text/x-lua",
	"jl": "text/x-julia", "scala": "text/x-scala", "kt": "text/x-kotlin", "swift": "text/x-swift", "cs": "text/x-csharp",

	// Images.
	"png": "image/png", "apng": "image/apng", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif",
	"webp": "image/webp", "avif": "image/avif", "bmp": "image/bmp", "ico": "image/vnd.microsoft.icon",
	"tif": "image/tiff", "tiff": "image/tiff", "heic": "image/heic", "jxl": "image/jxl", "svg": "image/svg+xml",

	// Audio, video, fonts.
	"mp3": "audio/mpeg", "wav": "audio/wav", "flac": "audio/flac", "ogg": "audio/ogg", "oga": "audio/ogg",
	"opus": "audio/ogg", "m4a": "audio/mp4", "aac": "audio/aac", "mid": "audio/midi", "midi": "audio/midi",
	"weba": "audio/webm", "mp4": "video/mp4", "m4v": "video/mp4", "webm": "video/webm", "mov": "video/quicktime",
	"avi": "video/x-msvideo", "mkv": "video/matroska", "mpg": "video/mpeg", "mpeg": "video/mpeg", "ogv": "video/ogg",
	"woff": "font/woff", "woff2": "font/woff2", "ttf": "font/ttf", "otf": "font/otf",

	// Documents.
	"pdf": "application/pdf", "ps": "application/postscript", "eps": "application/postscript",
	"epub": "application/epub+zip", "doc": "application/msword", "xls": "application/vnd.ms-excel",
	"ppt":  "application/vnd.ms-powerpoint",
	"docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"xlsm": "application/vnd.ms-excel.sheet.macroenabled.12",
	"odt":  "application/vnd.oasis.opendocument.text",
	"ods":  "application/vnd.oasis.opendocument.spreadsheet",
	"odp":  "application/vnd.oasis.opendocument.presentation",

	// Data in binary.
	"parquet": "application/vnd.apache.parquet", "arrow": "application/vnd.apache.arrow.file",
	"feather": "application/vnd.apache.arrow.file", "arrows": "application/vnd.apache.arrow.stream",
	"avro": "application/vnd.apache.avro", "orc": "application/vnd.apache.orc", "sqlite": "application/vnd.sqlite3",
	"sqlite3": "application/vnd.sqlite3", "db": "application/vnd.sqlite3", "h5": "application/x-hdf5",
	"hdf5": "application/x-hdf5", "nc": "application/x-netcdf", "npy": "application/x-npy", "npz": "application/x-npz",
	"mat": "application/x-matlab-data", "rds": "application/x-rds", "rdata": "application/x-rdata",
	"pkl": "application/x-pickle", "pickle": "application/x-pickle", "onnx": "application/x-onnx",
	"wasm": "application/wasm", "glb": "model/gltf-binary", "gltf": "model/gltf+json", "stl": "model/stl",

	// Archives.
	"zip": "application/zip", "whl": "application/zip", "jar": "application/java-archive", "gz": "application/gzip",
	"tgz": "application/gzip", "tar": "application/x-tar", "bz2": "application/x-bzip2", "xz": "application/x-xz",
	"zst": "application/zstd", "7z": "application/x-7z-compressed", "rar": "application/vnd.rar",
	"bin": Octets, "dat": Octets, "exe": Octets, "so": Octets,
}

// binaryApplication has the subtypes of application that are binary by no rule
// of IsBinary's.
var binaryApplication = []string{
	"octet-stream", "pdf", "postscript", "msword", "zip", "gzip", "x-gzip", "zstd", "x-tar", "x-bzip2", "x-xz",
	"x-7z-compressed", "vnd.rar", "x-rar-compressed", "x-zip-compressed", "java-archive", "wasm", "cbor", "msgpack",
	"x-msgpack", "vnd.msgpack", "protobuf", "x-protobuf", "vnd.apache.parquet", "x-parquet", "parquet",
	"vnd.apache.arrow.file", "vnd.apache.arrow.stream", "vnd.apache.avro", "vnd.apache.orc", "vnd.sqlite3",
	"x-sqlite3", "x-hdf5", "x-hdf", "x-netcdf", "netcdf", "x-npy", "x-npz", "x-matlab-data", "x-rds", "x-rdata",
	"x-pickle", "x-onnx", "ogg", "x-shockwave-flash", "vnd.rn-realmedia",
}

// preferred has the ending of each type of which byExtension has several, or of
// which a kernel uses another name.
var preferred = map[string]string{
	"text/plain": "txt", "text/markdown": "md", "text/html": "html", "text/x-diff": "diff", "text/tab-separated-values": "tsv",
	"text/x-tex": "tex", "text/latex": "tex", "application/x-tex": "tex", "application/x-latex": "tex",
	"application/json": "json", "application/x-ndjson": "ndjson", "application/jsonl": "jsonl",
	"application/xml": "xml", "text/xml": "xml", "application/yaml": "yaml", "application/x-yaml": "yaml", "text/yaml": "yaml",
	"text/vnd.graphviz": "dot", "text/x-python": "py", "text/javascript": "js", "application/javascript": "js",
	"application/x-javascript": "js", "application/typescript": "ts", "text/x-sh": "sh", "application/x-sh": "sh",
	"text/x-c": "c", "text/x-c++": "cpp", "image/jpeg": "jpg", "image/jpg": "jpg", "image/tiff": "tif",
	"image/x-icon": "ico", "audio/ogg": "ogg", "audio/midi": "mid", "audio/mp3": "mp3", "audio/x-wav": "wav",
	"audio/wave": "wav", "audio/vnd.wave": "wav", "video/mp4": "mp4", "video/mpeg": "mpg", "video/x-matroska": "mkv",
	"application/postscript": "ps", "application/vnd.apache.arrow.file": "arrow", "application/x-parquet": "parquet",
	"application/parquet": "parquet", "application/vnd.sqlite3": "sqlite", "application/x-sqlite3": "sqlite",
	"application/x-hdf5": "h5", "application/x-pickle": "pkl", "application/zip": "zip", "application/gzip": "gz",
	"application/x-gzip": "gz", "application/zstd": "zst", Octets: "bin",
}
