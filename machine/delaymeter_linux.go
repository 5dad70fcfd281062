package machine

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// taskFolder has a folder for each thread of the process.
const taskFolder = "/proc/self/task"

type threadDelay struct {
	id          int
	file        *os.File
	waited, ran time.Duration                       // so far
	more        struct{ waited, ran time.Duration } // than at the reading before
	cpus        int                                 // that it may use
	seen        bool
}

// Read is how long threads have waited so far, never less than before; false if
// the system does not tell.
func (m *DelayMeter) Read() (time.Duration, bool) {
	dir, err := os.Open(taskFolder)
	if err != nil {
		return 0, false
	}
	names, err := dir.Readdirnames(-1)
	if dir.Close(); err != nil {
		return 0, false
	}
	m.begin()
	for _, name := range names {
		if t := m.thread(name); t != nil {
			t.read()
			m.allowed = max(m.allowed, t.cpus)
		}
	}
	var all, pinned, own time.Duration
	for name, t := range m.threads {
		switch {
		case !t.seen:
			t.file.Close()
			delete(m.threads, name)
		case t.cpus < m.allowed:
			m.pinned = true
			pinned += t.more.waited
		default:
			own += t.more.ran
		}
		if t.seen {
			all += t.more.waited
		}
	}
	if m.pinned {
		all = pinned - own
	}
	m.counted += max(all, 0)
	return m.counted, len(m.threads) > 0
}

// begin prepares a reading.
func (m *DelayMeter) begin() {
	if m.threads == nil {
		m.threads = map[string]*threadDelay{}
	}
	for _, t := range m.threads {
		t.seen = false
	}
}

// thread is what is known of a thread; nil if it has ended, or the system does
// not tell.
func (m *DelayMeter) thread(name string) *threadDelay {
	t := m.threads[name]
	if t == nil {
		id, err := strconv.Atoi(name)
		if err != nil {
			return nil
		}
		f, err := os.Open(taskFolder + "/" + name + "/schedstat")
		if err != nil {
			return nil
		}
		t = &threadDelay{id: id, file: f}
		m.threads[name] = t
	}
	t.seen = true
	return t
}

// read reads how long the thread has waited and run, and how many CPUs it may use.
func (t *threadDelay) read() {
	var buffer [128]byte
	n, _ := t.file.ReadAt(buffer[:], 0)
	fields := bytes.Fields(buffer[:n]) // time on a CPU, time waiting for one, slices
	ran, waited := t.ran, t.waited
	for i, to := range []*time.Duration{&t.ran, &t.waited} {
		if i >= len(fields) {
			break
		}
		if ns, err := strconv.ParseInt(string(fields[i]), 10, 64); err == nil {
			*to = max(*to, time.Duration(ns))
		}
	}
	t.more.ran, t.more.waited = t.ran-ran, t.waited-waited
	var set unix.CPUSet
	if unix.SchedGetaffinity(t.id, &set) == nil {
		t.cpus = set.Count()
	}
}

// Close closes the files.
func (m *DelayMeter) Close() {
	for _, t := range m.threads {
		t.file.Close()
	}
	m.threads = nil
}
