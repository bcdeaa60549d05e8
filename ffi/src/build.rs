//! Gives the shared library its soname, keeps it loaded, and passes the version on.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=src/build.rs");
    let part = |name: &str| env::var(format!("CARGO_PKG_VERSION_{name}")).unwrap_or_default();
    let (major, minor, patch) = (part("MAJOR"), part("MINOR"), part("PATCH"));
    let linux_like = env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|family| family == "unix")
        && env::var("CARGO_CFG_TARGET_VENDOR").is_ok_and(|vendor| vendor != "apple");
    if linux_like {
        let soname = format!("liblanekeeper.so.{}", soname_version(&major, &minor, &patch));
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{soname}");
        // Threads may still run our thread-local destructors after a dlclose: stay mapped.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}

/// The part of the version that a break of the ABI changes: 0.0.p, 0.y, or the major number.
fn soname_version(major: &str, minor: &str, patch: &str) -> String {
    match (major, minor) {
        ("0", "0") => format!("0.0.{patch}"),
        ("0", _) => format!("0.{minor}"),
        _ => major.to_owned(),
    }
}
