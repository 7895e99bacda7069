package cmdline

import "testing"

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1024": 1024, "12B": 12, "4K": 4096, "4KiB": 4096, "4KB": 4000, "512MiB": 512 << 20, "8G": 8 << 30,
		"2TB": 2e12,
	} {
		if n, err := ParseSize(text); err != nil || n != want {
			t.Errorf("%q: %d, %v; want %d", text, n, err, want)
		}
	}
	for _, text := range []string{"", "B", "iB", "12iB", "-1", "1.5G", "G", "9999999999T", "1 K", "4KK", "0x10"} {
		if n, err := ParseSize(text); err == nil {
			t.Errorf("%q: %d", text, n)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1 KiB", 36864: "36 KiB", 38158336: "36.4 MiB", 1<<20 - 1: "1 MiB",
		2 << 30: "2 GiB", 1 << 50: "1024 TiB",
	} {
		if got := FormatSize(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}
