package power

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// CSVHeader is the first line of a CSV file.
const CSVHeader = "ts_sec,cpu_w,gpu_w,ane_w,dram_w,combined_w"

// A CSV writes samples as rows: the seconds from the begin to the end of the
// sample's time, and the mean watts in it. A field is empty if nothing measured
// it.
type CSV struct {
	w     io.Writer
	begin time.Time
}

// NewCSV writes the header.
func NewCSV(w io.Writer, begin time.Time) (*CSV, error) {
	_, err := fmt.Fprintln(w, CSVHeader)
	return &CSV{w, begin}, err
}

// Write writes a row.
func (c *CSV) Write(s Sample) error {
	row := []string{fmt.Sprintf("%.3f", s.At.Sub(c.begin).Seconds())}
	for _, p := range []Part{CPU, GPU, ANE, DRAM, Combined} {
		cell := ""
		if w, ok := s.Watts[p]; ok {
			cell = fmt.Sprintf("%.4f", w)
		}
		row = append(row, cell)
	}
	_, err := fmt.Fprintln(c.w, strings.Join(row, ","))
	return err
}
