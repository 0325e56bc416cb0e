#!/usr/bin/env bash
# Install the system tools and headers that some tests use when they are there. Needs root and apt; says what it could not install.
set -u

tools=(chromium kcat iproute2 fiu-utils postgresql rapidjson-dev)

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "optional tools: not root on a Debian system, nothing installed (wanted: ${tools[*]})"
    exit 0
fi

missing=()
for tool in "${tools[@]}"; do
    dpkg-query --show --showformat='${db:Status-Status}' "$tool" 2>/dev/null | grep -qx installed || missing+=("$tool")
done
[ ${#missing[@]} -eq 0 ] && exit 0

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq || echo "optional tools: the package lists could not be updated"
for tool in "${missing[@]}"; do
    apt-get install -qq -y --no-install-recommends "$tool" >/dev/null || echo "optional tools: $tool could not be installed"
done
