# Completion of quaid and ai-kb in bash. Made by `quaid completion bash` from the register of commands.
# To use it: quaid completion bash > ~/.local/share/bash-completion/completions/quaid

# Lines of word, kind, help: what may follow the command $1.
_quaid_table() {
    case $1 in
@TABLE@
    esac
}

# The kind of the entry $2 of the command $1; nothing if it has none.
_quaid_kind() {
    local word kind help
    while IFS=$'\t' read -r word kind help; do
        if [[ $word == "$2" ]]; then
            printf '%s' "$kind"
            return
        fi
    done < <(_quaid_table "$1")
}

# The words of the line up to the cursor into `line`, whole: bash takes them apart at = and :.
_quaid_line() {
    local at word glue=
    line=()
    for ((at = 1; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if [[ -n $glue || ($word =~ ^[=:]+$ && ${#line[@]} -gt 0) ]]; then
            line[${#line[@]} - 1]+=$word
        else
            line+=("$word")
        fi
        glue=
        [[ $word =~ ^[=:]+$ ]] && glue=yes
    done
    [[ ${#line[@]} -gt 0 ]] || line=("")
}

# Names out of the memory into `found`; what a shell would take apart is quoted, unless the person did it.
_quaid_names() {
    local start=$2 each
    case $start in
    [\"\']*) start=${start:1} ;;
    *) start=${start//\\/} ;;
    esac
    while IFS= read -r each; do
        [[ $2 == [\"\']* ]] || printf -v each %q "$each"
        found+=("$each")
    done < <("$program" completion "$1" "${place[@]}" -- "$start" 2>/dev/null </dev/null)
}

# Folders into `found`, and files: all of them, or those with the endings that the kind $1 names.
_quaid_files() {
    local each endings=
    [[ $1 == @files:* ]] && endings=${1#@files:}
    while IFS= read -r each; do
        if [[ $1 == @files || -d ${each/#\~\//$HOME/} || (-n $endings && $each == *.@(${endings//,/|})) ]]; then
            found+=("$each")
        fi
    done < <(compgen -f -- "$2")
}

_quaid() {
    local line command='' program=$1 slot=0 skip='' word kind help value current cut place=()
    [[ ${program##*/} == ai-kb ]] && command=kb && program=quaid
    _quaid_line
    current=${line[${#line[@]} - 1]}
    for word in "${line[@]:0:${#line[@]}-1}"; do
        if [[ -n $skip ]]; then
            case $skip in --db | --config) place+=("$skip" "$word") ;; esac
            skip=
        elif [[ $word == -* ]]; then
            kind=$(_quaid_kind "$command" "$word")
            [[ $word != *=* && -n $kind && $kind != - ]] && skip=$word
            case $word in --db=* | --config=*) place+=("$word") ;; esac
        elif ((slot == 0)) && [[ $(_quaid_kind "$command" "$word") == @command ]]; then
            command=${command:+$command }$word
        else
            ((slot++))
        fi
    done
    value=$current
    if [[ -n $skip ]]; then
        kind=$(_quaid_kind "$command" "$skip")
    elif [[ $current == --*=* ]]; then
        kind=$(_quaid_kind "$command" "${current%%=*}")
        value=${current#*=}
    elif [[ $current == -* ]]; then
        kind=@options
    else
        kind=$(_quaid_kind "$command" $((slot + 1)))
        [[ -n $kind ]] || kind=$(_quaid_kind "$command" '*')
    fi
    local found=()
    case $kind in
    @options)
        while IFS=$'\t' read -r word kind help; do
            [[ $word == "$current"* ]] && found+=("$word")
        done < <(_quaid_table "$command")
        ;;
    @files | @files:* | @folders)
        compopt -o filenames 2>/dev/null
        _quaid_files "$kind" "$value"
        ;;
    @any | - | @command | '') ;;
    @*)
        _quaid_names "${kind#@}" "$value"
        [[ ${#found[@]} -eq 1 && ${found[0]} == */ ]] && compopt -o nospace 2>/dev/null
        ;;
    *)
        while IFS= read -r word; do
            [[ $word == "$value"* ]] && found+=("$word")
        done < <(printf '%s\n' "${kind//|/$'\n'}")
        ;;
    esac
    if ((slot == 0)) && [[ -z $skip && $current != -* ]]; then
        while IFS=$'\t' read -r word kind help; do
            [[ $kind == @command && $word == "$current"* ]] && found+=("$word")
        done < <(_quaid_table "$command")
    fi
    # Bash puts in only what comes after the last = or : of the word.
    if [[ $COMP_WORDBREAKS == *:* && $value == *:* ]]; then
        cut=${value%"${value##*:}"}
        found=("${found[@]#"$cut"}")
    fi
    COMPREPLY=("${found[@]}")
}

complete -F _quaid quaid ai-kb
