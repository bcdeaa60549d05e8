//! C ABI of lanekeeper.
