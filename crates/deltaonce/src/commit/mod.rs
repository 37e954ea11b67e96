//! Lands one log entry exactly once.
