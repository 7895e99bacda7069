package submission

import "testing"

// The answers are those of dateutil's isoparse.
func TestTimes(t *testing.T) {
	for text, want := range map[string]bool{
		"2024": true, "2024-01": true, "20240102": true, "2024-01-02": true, "2024-W01-2": true, "2024W012": true, "2024-W01": true,
		"2024-032": true, "2024032": true, "2024-01-02T03:04:05Z": true, "2024-01-02 03:04": true, "2024-01-02x0304": true,
		"2024-01-02T24:00:00": true, "2024-01-02T03:04:05,678": true, "2024-01-02T03:04:05.123456789+01:00": true,
		"20240102T030405Z": true, "2024-01-02T03": true, "2024-01-02T03:04:05-0130": true, "2024-01-02T03:04:05z": true,
		"": false, "202401": false, "2024/01/02": false, "2024-1-2": false, "2024-02-30": false, "2024-13-01": false,
		"Tue, 02 Jan 2024 03:04:05 GMT": false, "2024-01-02T03:04:05Z ": false, "2024-01-02T24:00:01": false,
		"2024-01-02T25:00": false, "2024-01-02T03:60": false, "2024-01-02T": false, "2024-W54": false, "2024-000": false,
		"0000-01-01": false, "2024-01-02T03:04:05+25:00": false, "2024-0102": false,
	} {
		if got := isTime(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestBase64(t *testing.T) {
	for text, want := range map[string]bool{
		"abcd": true, "abcd=": true, "abcd==": true, "abc=": true, "abc==": true, "ab==": true,
		"abc": false, "ab=": false, "a": false, "abcd===": false, "ab-_": false, "ab=c": false,
	} {
		if got := isBase64(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}
