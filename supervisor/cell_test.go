package supervisor

import (
	"testing"
	"time"
)

func TestSentAt(t *testing.T) {
	now := time.Now()
	sent := now.Add(-time.Second)
	for date, want := range map[string]time.Time{
		now.Add(-300 * time.Millisecond).UTC().Format("2006-01-02T15:04:05.000000Z"): now.Add(-300 * time.Millisecond),
		now.Add(-300 * time.Millisecond).Format(time.RFC3339Nano):                    now.Add(-300 * time.Millisecond),
		now.Add(-time.Hour).UTC().Format(time.RFC3339Nano):                           sent, // it can't be so
		now.Add(time.Hour).UTC().Format(time.RFC3339Nano):                            now,
		"0001-01-01T00:00:00Z": sent,
		"9999-12-31T23:59:59Z": now,
		"2026-11-29T12:00:00":  now, // no zone
		"yesterday":            now,
		"":                     now,
	} {
		if got := sentAt(date, sent, now); got.Sub(want).Abs() > time.Millisecond {
			t.Errorf("%q: %v before now, wanted %v", date, now.Sub(got), now.Sub(want))
		}
	}
}
