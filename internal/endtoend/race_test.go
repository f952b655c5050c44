//go:build race

package endtoend

// raceDetector: the agent is built with it too, and ends with an error where it found one.
const raceDetector = true
