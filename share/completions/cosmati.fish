# Completion of `cosmati` for fish: verbs, subjects, options and names of values, as the program itself lists them.
function __cosmati_command # the verb and its subject
    set -l found
    for word in (commandline -opc)[2..-1]
        if string match -q -- '-*' $word; or test (count $found) -eq 2
            break
        end
        set -a found $word
    end
    string join \n -- $found
end

function __cosmati_names
    set -l tokens (commandline -opc)
    set -l program $tokens[1]
    set -l command (__cosmati_command)
    switch $tokens[-1]
        case --suite
            $program list suites 2>/dev/null | awk 'NR > 1 { print $2 }'
        case --kernel --algorithm
            $program list kernels 2>/dev/null | awk -v subject="$command[2]" '$1 == subject { print $3 }' | sort -u
        case --backend
            echo auto
            $program list kernels 2>/dev/null | awk 'NR > 1 { print $2 }' | sort -u
        case --type '--*-type' --accumulator --compute
            $program list aliases 2>/dev/null | awk 'NR > 1 && $1 ~ /^(tf|bf|f|e|s|u)[0-9]/ { print $1 }'
        case '*'
            set -l help ($program $command --help 2>/dev/null)
            if string match -q -- '-*' (commandline -ct)
                printf '%s\n' $help | sed -nE 's/^  (-[a-z],)?(--[a-z0-9-]+)( [^ ]+)*  +(.*)/\2\t\4/p; t; s/^  (-[a-z],)?(--[a-z0-9-]+).*/\2/p'
            else if not string match -q -- '-*' $tokens[-1]
                printf '%s\n' $help | sed -n '/^Subcommands:/,/^$/p' | sed -nE 's/^  ([a-z0-9-]+)(, [^ ]+)*  +(.*)/\1\t\3/p; t; s/^  ([a-z0-9-]+),?.*/\1/p'
            end
    end
end

function __cosmati_complete # or file names, where the program has no names to offer
    set -l names (__cosmati_names)
    if test (count $names) -gt 0
        printf '%s\n' $names
    else
        __fish_complete_path (commandline -ct)
    end
end

complete -c cosmati -f -a '(__cosmati_complete)'
