package cmdline

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"
	"golang.org/x/sys/unix"
)

// openTerminal returns both sides of a new terminal: what a person sees, and what a program has.
func openTerminal(t *testing.T, columns uint16) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	t.Cleanup(func() { person.Close() })
	fd := int(person.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	}
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminal can be made here: %v", err)
	}
	t.Cleanup(func() { program.Close() })
	return person, program
}

// A person sees the whole of what there is to see, in one line of the terminal as wide as it is.
func TestProgressAsSeen(t *testing.T) {
	escapes := regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")
	for columns, want := range map[uint16]string{
		60:  "mirroring: 27/408 images 1.2/8.3 GiB 12.3 MiB/s 9m5",
		100: "mirroring: 27 of 408 images, 1.2 GiB of 8.3 GiB, 12.3 MiB/s, about 9m5",
		160: "12.3 MiB/s, about 9m5",
	} {
		t.Run(fmt.Sprint(columns), func(t *testing.T) {
			person, program := openTerminal(t, columns)
			seen := make(chan string)
			go func() {
				text, _ := io.ReadAll(person) // ends with EIO when the program's side is closed
				seen <- string(text)
			}()
			p := NewProgress(NewScreen(program), nil)
			p.after, p.begin = 0, time.Now().Add(-100*time.Second)
			p.last = p.begin
			p.Set(State{What: "mirroring", Done: 27, All: 408, Units: "images", Bytes: 1288490188, AllBytes: 8912896000})
			p.Close()
			program.Close()
			text := <-seen
			found := false
			for line := range strings.SplitSeq(text, "\n") {
				line = strings.TrimRight(escapes.ReplaceAllString(line, ""), "\r ")
				line = line[strings.LastIndex(line, "\r")+1:]
				if width := runewidth.StringWidth(line); width >= int(columns) {
					t.Errorf("%d columns in %d: %q", width, columns, line)
				}
				found = found || strings.Contains(line, want) && (columns != 160 || strings.HasSuffix(line, "]"))
			}
			if !found {
				t.Errorf("no %q in %q", want, text)
			}
		})
	}
}
