# Completion of `cosmati` for bash: verbs, subjects, options and names of values, as the program itself lists them.
_cosmati() {
  local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words="" word help
  local -a command=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do # the verb and its subject
    [[ $word == -* || ${#command[@]} -eq 2 ]] && break
    command+=("$word")
  done
  case $previous in
    --suite) words=$("$program" list suites 2>/dev/null | awk 'NR > 1 { print $2 }') ;;
    --kernel | --algorithm) words=$("$program" list kernels 2>/dev/null | awk -v subject="${command[1]}" '$1 == subject { print $3 }' | sort -u) ;;
    --backend) words="auto $("$program" list kernels 2>/dev/null | awk 'NR > 1 { print $2 }' | sort -u)" ;;
    --type | --*-type | --accumulator | --compute)
      words=$("$program" list aliases 2>/dev/null | awk 'NR > 1 && $1 ~ /^(tf|bf|f|e|s|u)[0-9]/ { print $1 }') ;;
    *)
      help=$("$program" "${command[@]}" --help 2>/dev/null) || return
      if [[ $current == -* ]]; then
        words=$(sed -nE 's/^  (-[a-z],)?(--[a-z0-9-]+).*/\2/p' <<<"$help")
      elif [[ $previous != -* ]]; then
        words=$(awk '/^$/ { within = 0 } within && /^  [a-z]/ { sub(",", "", $1); print $1 } /^Subcommands:/ { within = 1 }' <<<"$help")
      fi ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
} # nothing found: bash completes file names
complete -o default -F _cosmati cosmati
