#!/bin/sh
# compile.sh CCACHE COMPILER ARGUMENTS...: compiles through ccache, so that one cache serves all checkouts
# of this project. A precompiled header contains absolute paths and the times of its headers, so it is
# compiled where it is used. Next to it, this script writes the checksum of the headers it was made of
# (.gch.sum), by which ccache knows it: the checksum is the same in every checkout.
ccache=$1
shift

output='' dependencies='' previous=''
for argument; do
  case $previous in
    -o) output=$argument ;;
    -MF) dependencies=$argument ;;
  esac
  previous=$argument
done

case $output in
  *.gch) ;;
  *) exec "$ccache" "$@" ;;
esac

"$@" || exit
# The dependency file is a rule of make: the output, a colon, and the headers with line continuations.
# Generated headers list the others by absolute paths and do not count.
if sums=$(sed -e 's/^[^ ]*://' -e 's/\\$//' "$dependencies" | tr -s ' ' '\n' | grep -v -e cmake_pch.hxx -e '^$' |
  xargs sha256sum); then
  echo "$sums" | cut -d ' ' -f 1 >"$output.sum"
else
  rm -f "$output.sum"  # ccache then reads the precompiled header itself
fi
