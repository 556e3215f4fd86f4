// Functions without a body need an assembly file in their package; theirs are in another package (see doc.go).
