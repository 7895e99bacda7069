package submission

import (
	"strconv"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// The forms of times in ISO 8601, each in its basic and its extended form.
var (
	isoDate = lazyregexp.New(`^(\d{4})(?:-?(\d\d)-?(\d\d)|-(\d\d)|-?W(\d\d)(?:-?(\d))?|-?(\d{3}))?$`)
	isoTime = lazyregexp.New(`^(\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d+))?)?)?(?:[Zz]|[-+](\d\d)(?::?(\d\d))?)?$`)
)

// isTime reports whether a text is a time as the pipeline reads it: a date in ISO 8601, alone or followed by any
// character and a time of the day.
func isTime(s string) bool {
	date, rest := s, ""
	for _, n := range []int{10, 8, 7, 4} { // the longest date comes first
		if len(s) > n+1 && isoDate().MatchString(s[:n]) && isoTime().MatchString(s[n+1:]) {
			date, rest = s[:n], s[n+1:]
			break
		}
	}
	m := isoDate().FindStringSubmatch(date)
	if m == nil || strings.Count(date, "-") == 1 && m[2] != "" {
		return false
	}
	switch {
	case m[2] != "" && !isDay(number(m[1]), number(m[2]), number(m[3])),
		m[4] != "" && !isDay(number(m[1]), number(m[4]), 1),
		m[5] != "" && (number(m[5]) < 1 || number(m[5]) > 53 || m[6] != "" && (number(m[6]) < 1 || number(m[6]) > 7)),
		m[7] != "" && (number(m[7]) < 1 || number(m[7]) > 366), number(m[1]) == 0:
		return false
	case rest == "":
		return true
	}
	t := isoTime().FindStringSubmatch(rest)
	midnight := t[1] == "24" && number(t[2])+number(t[3])+number(t[4]) == 0
	return (midnight || isClock(t[1], t[2], t[3])) && isClock(t[5], t[6], "")
}

// isDay reports whether a day is in the calendar.
func isDay(year, month, day int) bool {
	t := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	return year > 0 && t.Month() == time.Month(month) && t.Day() == day
}

func isClock(hour, minute, second string) bool {
	return number(hour) < 24 && number(minute) < 60 && number(second) < 60
}

// number returns the number of some digits; 0 for none.
func number(digits string) int {
	n, _ := strconv.Atoi(digits[:min(len(digits), 9)])
	return n
}
