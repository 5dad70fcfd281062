package machine

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// maxPath is the longest path that linux knows.
const maxPath = 4096

// A group is one folder of the control group hierarchy that governs this
// process, on either version of the interface.
type group struct {
	dir string
	v2  bool
}

// groups returns the folders that govern a controller ("cpu", "memory") for
// this process, from its own group up to the root of the mount. A limit of any
// of them holds.
func (t *tree) groups(controller string) []group {
	membership, ok := t.text("proc/self/cgroup")
	if !ok {
		return nil
	}
	mounts, _ := t.text("proc/self/mountinfo")
	var out []group
	for line := range strings.Lines(membership) {
		// hierarchy-ID:controller,list:/path, where version 2 has no list.
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			t.malformed("proc/self/cgroup", fmt.Errorf("%.60q has not three fields", line))
			continue
		}
		if len(parts[2]) > maxPath {
			t.malformed("proc/self/cgroup", fmt.Errorf("a path of %d bytes", len(parts[2])))
			continue
		}
		v2 := parts[0] == "0" && parts[1] == ""
		if !v2 && !hasItem(parts[1], controller) {
			continue
		}
		for mount := range strings.Lines(mounts) {
			m, ok := parseMount(mount)
			if !ok || v2 != (m.fstype == "cgroup2") || !v2 && (m.fstype != "cgroup" || !hasItem(m.options, controller)) {
				continue
			}
			top := path.Clean(strings.TrimPrefix(m.point, "/"))
			for dir := path.Join(top, below(parts[2], m.root)); ; dir = path.Dir(dir) {
				out = append(out, group{dir, v2})
				if dir == top || dir == "." {
					break
				}
			}
			break
		}
	}
	return out
}

// below returns the part of a group's path that lies under the root of a
// mount. A container may see the host's path of its group although its mount
// begins there or elsewhere: then the mount itself is its group.
func below(group, root string) string {
	group, root = path.Clean("/"+group), path.Clean("/"+root)
	if root == "/" {
		return group
	}
	if rest, ok := strings.CutPrefix(group+"/", root+"/"); ok {
		return rest
	}
	return ""
}

func hasItem(list, item string) bool {
	for s := range strings.SplitSeq(list, ",") {
		if s == item {
			return true
		}
	}
	return false
}

// A mount is what we need of a line of /proc/self/mountinfo.
type mount struct{ root, point, fstype, options string }

// parseMount reads "id parent dev root point options [tags …] - fstype source
// superoptions".
func parseMount(line string) (mount, bool) {
	left, right, ok := strings.Cut(line, " - ")
	l, r := strings.Fields(left), strings.Fields(right)
	if !ok || len(l) < 6 || len(r) < 3 {
		return mount{}, false
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	return mount{unescape.Replace(l[3]), unescape.Replace(l[4]), r[0], r[2]}, true
}

// quota returns the CPUs' worth of time granted to this process, 0 if it is
// not limited: the least over all groups.
func (t *tree) quota() float64 {
	least := 0.0
	for _, g := range t.groups("cpu") {
		q := t.groupQuota(g)
		if q > 0 && (least == 0 || q < least) {
			least = q
		}
	}
	return least
}

func (t *tree) groupQuota(g group) float64 {
	if !g.v2 {
		quota, ok := t.number(g.dir + "/cpu.cfs_quota_us")
		period, ok2 := t.number(g.dir + "/cpu.cfs_period_us")
		if !ok || !ok2 || quota <= 0 {
			return 0
		}
		if period <= 0 {
			t.malformed(g.dir+"/cpu.cfs_period_us", fmt.Errorf("a period of %d µs", period))
			return 0
		}
		return float64(quota) / float64(period)
	}
	s, ok := t.text(g.dir + "/cpu.max")
	if !ok {
		return 0
	}
	fields := strings.Fields(s)
	if len(fields) > 0 && fields[0] == "max" {
		return 0
	}
	if len(fields) == 2 {
		quota, err := strconv.ParseInt(fields[0], 10, 64)
		period, err2 := strconv.ParseInt(fields[1], 10, 64)
		if errors.Join(err, err2) == nil && quota > 0 && period > 0 {
			return float64(quota) / float64(period)
		}
	}
	t.malformed(g.dir+"/cpu.max", fmt.Errorf("%.40q is not a quota and a period", s))
	return 0
}

// memory returns the machine's memory within the bounds of all groups.
func (t *tree) memory() Memory {
	var m Memory
	info, _ := t.text("proc/meminfo")
	m.Total = t.meminfo(info, "MemTotal")
	m.Available = t.meminfo(info, "MemAvailable")
	for _, g := range t.groups("memory") {
		limit := t.memoryLimit(g)
		// Version 1 writes "no limit" as a number larger than any memory.
		if limit == 0 || limit >= 1<<60 || m.Total > 0 && limit >= m.Total {
			continue
		}
		if m.Limit == 0 || limit < m.Limit {
			m.Limit = limit
		}
		if used, ok := t.memoryUsed(g); ok {
			left := max(limit-used, 1)
			if m.Available == 0 || left < m.Available {
				m.Available = left
			}
		}
	}
	if m.Limit > 0 {
		m.Total = m.Limit
		m.Available = min(m.Available, m.Limit)
	}
	return m
}

func (t *tree) meminfo(info, key string) int64 {
	s, ok := field(info, key)
	if !ok {
		t.notes.add(key, "/proc/meminfo has no %s", key)
		return 0
	}
	n, err := kilobytes(s)
	if err != nil {
		t.notes.add(key, "/proc/meminfo, %s: %v", key, err)
		return 0
	}
	return n
}

// memoryLimit returns a group's limit in bytes, 0 if it has none. On version 2
// memory.high counts as well: above it the kernel slows the process down.
func (t *tree) memoryLimit(g group) int64 {
	if !g.v2 {
		n, _ := t.number(g.dir + "/memory.limit_in_bytes")
		return max(n, 0)
	}
	least := int64(0)
	for _, name := range []string{"/memory.max", "/memory.high"} {
		if s, ok := t.text(g.dir + name); !ok || s == "max" {
			continue
		}
		if n, ok := t.number(g.dir + name); ok && n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	return least
}

// memoryUsed returns what a group holds in bytes less the file pages that the
// kernel can drop, which MemAvailable does not count as used either.
func (t *tree) memoryUsed(g group) (int64, bool) {
	usage, inactive := "/memory.usage_in_bytes", "total_inactive_file "
	if g.v2 {
		usage, inactive = "/memory.current", "inactive_file "
	}
	used, ok := t.number(g.dir + usage)
	if !ok || used < 0 {
		return 0, false
	}
	stat, _ := t.text(g.dir + "/memory.stat")
	for line := range strings.Lines(stat) {
		if rest, ok := strings.CutPrefix(line, inactive); ok {
			if n, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64); err == nil && n >= 0 {
				used = max(used-n, 0)
			}
		}
	}
	return used, true
}
