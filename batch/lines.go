package batch

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// maxLine is the most bytes of a line, so that a file without line breaks does
// not fill the memory.
const maxLine = 64 << 20

// lines reads a file line by line.
type lines struct {
	r   *bufio.Reader
	buf []byte
	end int64 // offset behind the last line read
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 64<<10)} }

// next is the next line without its line break, valid until the call after,
// and whether it had one. The error is io.EOF behind the last line.
func (l *lines) next() (line []byte, whole bool, err error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		l.buf = append(l.buf, part...)
		l.end += int64(len(part))
		switch {
		case len(l.buf) > maxLine:
			return nil, false, fmt.Errorf("it has more than %d MiB", maxLine>>20)
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil:
			return l.buf[:len(l.buf)-1], true, nil
		case err == io.EOF && len(l.buf) > 0:
			return l.buf, false, nil
		default:
			return nil, false, err
		}
	}
}
