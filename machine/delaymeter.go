package machine

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// A DelayMeter reads [RunDelay] over and over. It keeps the files of the threads
// open, so that a reading takes some microseconds a thread, and counts on with
// what threads had waited that have ended. The zero value is ready; it is used
// by one goroutine at a time and closed in the end.
type DelayMeter struct {
	threads map[string]*threadDelay
	ended   time.Duration // of threads that have ended
}

type threadDelay struct {
	file   *os.File
	waited time.Duration
	seen   bool
}

// taskFolder has a folder for each thread of the process.
const taskFolder = "/proc/self/task"

// Read is what [RunDelay] is, but never less than before.
func (m *DelayMeter) Read() (time.Duration, bool) {
	dir, err := os.Open(taskFolder)
	if err != nil {
		return 0, false
	}
	names, err := dir.Readdirnames(-1)
	if dir.Close(); err != nil {
		return 0, false
	}
	if m.threads == nil {
		m.threads = map[string]*threadDelay{}
	}
	for _, t := range m.threads {
		t.seen = false
	}
	var buffer [128]byte
	sum := m.ended
	for _, name := range names {
		t := m.threads[name]
		if t == nil {
			f, err := os.Open(taskFolder + "/" + name + "/schedstat")
			if err != nil {
				continue // the thread has ended, or the system does not tell
			}
			t = &threadDelay{file: f}
			m.threads[name] = t
		}
		t.seen = true
		n, _ := t.file.ReadAt(buffer[:], 0)
		fields := bytes.Fields(buffer[:n]) // time on a CPU, time waiting for one, slices
		if len(fields) >= 2 {
			if ns, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
				t.waited = max(t.waited, time.Duration(ns))
			}
		}
		sum += t.waited
	}
	for name, t := range m.threads {
		if !t.seen {
			t.file.Close()
			m.ended += t.waited
			sum += t.waited
			delete(m.threads, name)
		}
	}
	return sum, len(m.threads) > 0
}

// Close closes the files.
func (m *DelayMeter) Close() {
	for _, t := range m.threads {
		t.file.Close()
	}
	m.threads = nil
}
