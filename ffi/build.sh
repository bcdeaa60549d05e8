#!/usr/bin/env bash
# Builds liblanekeeper.so and liblanekeeper.a as they ship, and lays out a prefix with them:
#   ffi/build.sh [PREFIX]        default: <target directory>/stage
# PREFIX/include/lanekeeper.h
# PREFIX/lib/liblanekeeper.{so,so.0.1,so.0.1.0,a}, PREFIX/lib/pkgconfig/lanekeeper.pc
# Each crate type is built by itself: together, or with an rlib, cargo would leave LTO out.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-$PWD/target}
prefix=${1:-$target/stage}
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version *= *"\([^"]*\)"/\1/p' Cargo.toml)
IFS=. read -r major minor patch <<<"$version"
case "$major.$minor" in
    0.0) soname=0.0.$patch ;;
    0.*) soname=0.$minor ;;
    *) soname=$major ;;
esac

cargo rustc --profile dist -p lanekeeper-ffi --crate-type cdylib
mkdir -p "$prefix/include" "$prefix/lib/pkgconfig"
install -m 755 "$target/dist/liblanekeeper.so" "$prefix/lib/liblanekeeper.so.$version"
log=$(cargo rustc --profile dist -p lanekeeper-ffi --crate-type staticlib -- \
    --print native-static-libs 2>&1) || { echo "$log" >&2; exit 1; }
ffi/localize.sh "$target/dist/liblanekeeper.a" "$prefix/lib/liblanekeeper.a"
static_libs=$(sed -n 's/^note: native-static-libs: //p' <<<"$log" | tail -1)

ln -sf "liblanekeeper.so.$version" "$prefix/lib/liblanekeeper.so.$soname"
ln -sf "liblanekeeper.so.$soname" "$prefix/lib/liblanekeeper.so"
install -m 644 include/*.h "$prefix/include/"
for header in include/*.hpp; do
    [ ! -e "$header" ] || install -m 644 "$header" "$prefix/include/"
done
static_libs=${static_libs:--lgcc_s -lutil -lrt -lpthread -lm -ldl -lc}
sed -e "s/@VERSION@/$version/" -e "s/@STATIC_LIBS@/$static_libs/" \
    ffi/pkgconfig/lanekeeper.pc.in >"$prefix/lib/pkgconfig/lanekeeper.pc"
echo "staged in $prefix"
