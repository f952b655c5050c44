// Package mime holds what the agent knows of the content of results and
// streams: which MIME types are text, JSON or binary, what type a file's name
// stands for, and how text is decoded, folded, stripped and cut. It does no I/O
// beyond the readers and writers given to it, starts no goroutine and holds
// nothing that has to be closed.
//
// The way of a stream's text: a [Decoder] turns bytes into valid UTF-8, a
// [Folder] folds the redraws of progress bars, and a [HeadTail] keeps the head
// and the tail of what comes out, however long it gets. Values are different:
// a [Base64Reader] decodes a binary one as it goes to disk, and
// io.TeeReader(text, headTail) keeps the head and the tail of a long text that
// is read once on its way there.
//
// None of the types is safe for concurrent use.
package mime
