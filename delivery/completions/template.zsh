#compdef quaid ai-kb
# Completion of quaid and ai-kb in zsh. Made by `quaid completion zsh` from the register of commands.
# To use it: quaid completion zsh > a folder of $fpath, as the file _quaid; or: source <(quaid completion zsh)

# Lines of word, kind, help: what may follow the command $1.
_quaid_table() {
    case $1 in
@TABLE@
    esac
}

# The kind of the entry $2 of the command $1; nothing if it has none.
_quaid_kind() {
    local entry
    for entry in "${(@f)$(_quaid_table "$1")}"; do
        if [[ ${entry%%$'\t'*} == "$2" ]]; then
            entry=${entry#*$'\t'}
            print -rn -- "${entry%%$'\t'*}"
            return
        fi
    done
}

_quaid() {
    local command='' program=${words[1]} skip='' word kind entry help current=${words[CURRENT]}
    local -i slot=0
    local -a place found shown
    [[ ${program:t} == ai-kb ]] && command=kb && program=quaid
    for word in "${(@)words[2,CURRENT-1]}"; do
        word=${(Q)word}
        if [[ -n $skip ]]; then
            [[ $skip == --db || $skip == --config ]] && place+=("$skip" "$word")
            skip=
        elif [[ $word == -* ]]; then
            kind=$(_quaid_kind "$command" "$word")
            [[ $word != *=* && -n $kind && $kind != - ]] && skip=$word
            [[ $word == --db=* || $word == --config=* ]] && place+=("$word")
        elif (( slot == 0 )) && [[ $(_quaid_kind "$command" "$word") == @command ]]; then
            command=${command:+$command }$word
        else
            slot+=1
        fi
    done
    if [[ -n $skip ]]; then
        kind=$(_quaid_kind "$command" "$skip")
    elif [[ $current == --*=* ]]; then
        kind=$(_quaid_kind "$command" "${current%%=*}")
        compset -P 1 '*='
        current=${current#*=}
    elif [[ $current == -* ]]; then
        kind=@options
    else
        kind=$(_quaid_kind "$command" $((slot + 1)))
        [[ -n $kind ]] || kind=$(_quaid_kind "$command" '*')
    fi
    if (( slot == 0 )) && [[ -z $skip && $current != -* ]]; then
        for entry in "${(@f)$(_quaid_table "$command")}"; do
            word=${entry%%$'\t'*} help=${entry##*$'\t'} entry=${entry#*$'\t'}
            [[ ${entry%%$'\t'*} == @command ]] && found+=("$word") shown+=("${(r:18:)word} $help")
        done
        (( ${#found} )) && compadd -l -d shown -a found
    fi
    case $kind in
    @options)
        found=() shown=()
        for entry in "${(@f)$(_quaid_table "$command")}"; do
            word=${entry%%$'\t'*} help=${entry##*$'\t'}
            [[ $word == -* ]] && found+=("$word") shown+=("${(r:18:)word} $help")
        done
        compadd -l -d shown -a found
        ;;
    @files) _files ;;
    # _files would offer every file where none of these fits.
    @files:*)
        _path_files -g "*.(${${kind#@files:}//,/|})(-.)"
        _path_files -/
        ;;
    @folders) _path_files -/ ;;
    @any|-|@command|'') ;;
    @*)
        found=("${(@f)$("$program" completion "${kind#@}" "${place[@]}" -- "${(Q)PREFIX}" 2>/dev/null </dev/null)}")
        compadd -S '' -- "${(@M)found:#*/}"
        compadd -- "${(@)${(@)found:#*/}:#}"
        ;;
    *)
        found=("${(@s:|:)kind}")
        compadd -a found
        ;;
    esac
}

if [[ ${funcstack[1]} == _quaid ]]; then
    _quaid "$@"
else
    compdef _quaid quaid ai-kb
fi
