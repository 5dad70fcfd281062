package machine

import (
	"strings"
	"testing"
)

func TestParseQoS(t *testing.T) {
	for s, want := range map[string]QoS{
		"": QoSDefault, "background": QoSBackground, "utility": QoSUtility,
		"user-initiated": QoSUserInitiated, "userInitiated": QoSUserInitiated, "high": QoSUserInitiated,
	} {
		if q, err := ParseQoS(s); err != nil || q != want {
			t.Errorf("%q: %q, %v", s, q, err)
		}
	}
	if _, err := ParseQoS("fast"); err == nil || !strings.Contains(err.Error(), `"fast"`) || !strings.Contains(err.Error(), "utility") {
		t.Errorf("fast: %v", err)
	}
}
