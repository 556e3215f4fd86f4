// Package sandbox gives one process a file tree of its own: the host's, with volumes mounted where a container wants
// them, also at paths that the host does not have. Nothing of it is ever seen on the host.
//
//	host /            new root (a tmpfs in a mount namespace of its own)
//	|-- bin -> usr/bin    |-- bin -> usr/bin      symlinks are copied
//	|-- usr/              |-- usr/    = bind      what exists is bound, with everything mounted below it
//	|-- opt/              |-- opt/    = volume    a volume may cover what exists
//	'-- ...               '-- input/  = volume    and what does not exist can be made, for the launcher owns this root
//
// A volume deep in a folder of the host that has no such entry (/usr/share/app) makes that folder "revealed": rebuilt as
// a tmpfs whose entries are bound one by one, so that the missing one can be added.
//
// The tree must be built between fork and exec, by a process in the new namespace. That process is this very program,
// executed again under another name: init below sees the name, builds, and executes the container's program in its
// place. It is an init function because it must come before anything else that a main, or a test, would do; the package
// imports next to nothing so that it comes early.
package sandbox
