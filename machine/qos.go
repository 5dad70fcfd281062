package machine

import (
	"fmt"
	"slices"
	"strings"
)

// A QoS is how much a thread matters to the system's scheduler beside others.
type QoS string

// The classes, from least to most. On linux a thread never gets more than the
// process was started with.
const (
	QoSDefault       QoS = ""               // left as the process was started
	QoSBackground    QoS = "background"     // runs when nothing else wants the core
	QoSUtility       QoS = "utility"        // yields to what a person waits for
	QoSUserInitiated QoS = "user-initiated" // a person waits for it
)

var classes = []QoS{QoSBackground, QoSUtility, QoSUserInitiated}

// ParseQoS reads the name of a class. Besides those above it knows the spelling
// userInitiated, and high for it; "" is QoSDefault.
func ParseQoS(s string) (QoS, error) {
	switch q := QoS(s); {
	case s == "" || slices.Contains(classes, q):
		return q, nil
	case strings.EqualFold(s, "userInitiated") || s == "high":
		return QoSUserInitiated, nil
	}
	return "", fmt.Errorf("%q is no scheduling class; there are background, utility and user-initiated", s)
}

// Efficient reports whether threads of the class belong on efficiency cores,
// where there are some.
func (q QoS) Efficient() bool { return q == QoSBackground || q == QoSUtility }
