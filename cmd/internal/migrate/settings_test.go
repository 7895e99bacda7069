package migrate

import (
	"encoding/json"
	"testing"
)

// Records of earlier runs have digests of these texts.
func TestSettingsStay(t *testing.T) {
	for _, tt := range []struct {
		settings any
		want     string
	}{
		{directorySettings{Format: "yaml"}, `{"Format":"yaml","Level":"","Compat":"","Platform":""}`},
		{directorySettings{Repair: true}, `{"Format":"","Level":"","Compat":"","Platform":"","Repair":true}`},
		{imageSettings{directorySettings: directorySettings{Format: "json"}, MaxLayers: 7},
			`{"Format":"json","Level":"","Compat":"","Platform":"","Platforms":null,"Labels":null,"Annotations":null,` +
				`"Image":"","Compression":"","Cache":"","Server":"","Base":"","Time":"","MaxLayers":7}`},
	} {
		if got, err := json.Marshal(tt.settings); err != nil || string(got) != tt.want {
			t.Errorf("%s instead of %s: %v", got, tt.want, err)
		}
	}
}
