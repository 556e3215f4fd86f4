package sandbox

// Name is the name under which the program is executed again to build a sandbox.
const Name = "jobstream-sandbox"

// File descriptors of the program under that name.
const (
	specFD  = 3 // the Spec, as JSON
	errorFD = 4 // a Failure, as JSON; closed without a word when the container's program runs
)

// Spec describes what to build and to run.
type Spec struct {
	// Stage is an empty folder on which the new root is put together.
	Stage string `json:"stage"`
	// Mounts are bound into the new root, shorter targets first.
	Mounts []Mount `json:"mounts"`
	// Dir is the working directory, as the container sees it. It is made where it does not exist.
	Dir string `json:"dir"`
	// Args are the program, looked up in the PATH of the environment, and its arguments.
	Args []string `json:"args"`
}

// Mount shows a file or folder of the host at another place.
type Mount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly,omitempty"`
}

// Failure explains why a sandbox could not be built or its program could not be run.
type Failure struct {
	// Program reports that the sandbox was built and only the program could not be run.
	Program bool   `json:"program,omitempty"`
	Missing bool   `json:"missing,omitempty"` // it does not exist
	Message string `json:"message"`
}

func (f Failure) Error() string { return f.Message }
