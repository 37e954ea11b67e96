//! Writes data files that no reader sees until a log entry names them.
