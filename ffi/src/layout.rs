//! Layout of the C structs.
