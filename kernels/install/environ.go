package install

import "strings"

// systemPath is where installers are looked for. Not in the agent's own PATH: that may
// name a directory of the cells', such as the bin of a virtual environment, and what
// lies there must not be run as root.
const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// passed are the variables that installers are given of an environment: by which the
// network is reached, and pip's and npm's own of that.
var passed = []string{"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"REQUESTS_CA_BUNDLE", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_TRUSTED_HOST", "PIP_CERT", "PIP_PROXY", "APT_CONFIG",
	"NODE_EXTRA_CA_CERTS", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_CAFILE", "NPM_CONFIG_PROXY", "NPM_CONFIG_HTTPS_PROXY", "NPM_CONFIG_NOPROXY"}

// cleanEnv is the environment of installers: nothing of what kernels are started with,
// but how the network is reached.
func cleanEnv(env []string) []string {
	clean := []string{"PATH=" + systemPath, "HOME=/root"}
	for _, variable := range env {
		name, _, _ := strings.Cut(variable, "=")
		for _, p := range passed {
			if strings.EqualFold(name, p) {
				clean = append(clean, variable)
			}
		}
	}
	return clean
}
