"""Independent answers: what the package says is compared with these, which import nothing of it."""
