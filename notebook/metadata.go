package notebook

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/cellard/cellard/protocol/api"
)

// maxInfo bounds a language_info in bytes: it is in each answer that tells a context.
const maxInfo = 16 << 10

// LanguageInfo is what a kernel says of its language (language_info of its
// kernel_info_reply) as a notebook may hold it: what is of a wrong type for that is left
// out, and the name is the given one where the kernel says none.
func LanguageInfo(raw json.RawMessage, name string) json.RawMessage {
	var info map[string]any
	if len(raw) > maxInfo || decode(raw, &info) != nil || info == nil {
		info = map[string]any{}
	}
	for _, key := range []string{"name", "file_extension", "mimetype", "pygments_lexer"} {
		if v, there := info[key]; there && !isString(v) {
			delete(info, key)
		}
	}
	if mode, there := info["codemirror_mode"]; there && !isString(mode) {
		if _, ok := mode.(map[string]any); !ok {
			delete(info, "codemirror_mode")
		}
	}
	if text(info["name"]) == "" {
		info["name"] = name
	}
	b, err := marshal(info)
	if err != nil {
		b, _ = marshal(map[string]string{"name": name})
	}
	return b
}

func isString(v any) bool { _, ok := v.(string); return ok }

// timeFormat is how nbclient writes a time.
const timeFormat = "2006-01-02T15:04:05.000000Z"

// Times are the times that nbclient writes into a cell's metadata (record_timing); those
// that the kernel never told are left out.
func Times(t *api.Timing) map[string]string {
	times := map[string]string{}
	if t == nil {
		return times
	}
	for name, at := range map[string]*time.Time{"iopub.status.busy": t.Busy, "iopub.execute_input": t.Input,
		"shell.execute_reply": t.Reply, "iopub.status.idle": t.Idle} {
		if at != nil {
			times[name] = at.UTC().Format(timeFormat)
		}
	}
	return times
}

// Kernel is what a notebook says of the kernel that made it.
type Kernel struct {
	// Name is the kernelspec's, DisplayName its name for people; "" is that of the language.
	Name, DisplayName string
	// LanguageInfo is as the function of that name gives it; nil where no kernel has started.
	LanguageInfo json.RawMessage
	// Language is the agent's name of the language.
	Language string
}

func (k Kernel) metadata() map[string]any {
	info := k.LanguageInfo
	if len(info) == 0 {
		info = LanguageInfo(nil, k.Language)
	}
	var named struct{ Name string }
	_ = json.Unmarshal(info, &named) // it has one
	display := k.DisplayName
	if display == "" {
		display = strings.ToUpper(k.Language[:min(1, len(k.Language))]) + k.Language[min(1, len(k.Language)):]
	}
	return map[string]any{"kernelspec": map[string]any{"name": k.Name, "display_name": display, "language": named.Name}, "language_info": info}
}
