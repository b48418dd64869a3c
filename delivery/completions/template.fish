# Completion of quaid and ai-kb in fish. Made by `quaid completion fish` from the register of commands.
# To use it: quaid completion fish > ~/.config/fish/completions/quaid.fish

# Lines of word, kind, help: what may follow the command.
function __quaid_table
    switch $argv[1]
@TABLE@
    end
end

# The kind of an entry of a command; nothing if it has none.
function __quaid_kind
    for entry in (__quaid_table $argv[1])
        set -l parts (string split \t -- $entry)
        if test "$parts[1]" = "$argv[2]"
            echo $parts[2]
            return
        end
    end
end

function __quaid_complete
    set -l line (commandline -opc)
    set -l current (commandline -ct)
    set -l program $line[1]
    set -l command ''
    set -l skip ''
    set -l slot 0
    set -l place
    if string match -q '*ai-kb' -- $program
        set command kb
        set program quaid
    end
    for word in $line[2..-1]
        if test -n "$skip"
            contains -- $skip --db --config; and set -a place $skip $word
            set skip ''
        else if string match -q -- '-*' $word
            set -l kind (__quaid_kind "$command" $word)
            if not string match -q -- '*=*' $word; and test -n "$kind" -a "$kind" != -
                set skip $word
            end
            string match -qr -- '^--(db|config)=' $word; and set -a place $word
        else if test $slot -eq 0; and test (__quaid_kind "$command" $word; or echo) = @command 2>/dev/null
            set command (string trim -- "$command $word")
        else
            set slot (math $slot + 1)
        end
    end
    set -l kind ''
    set -l before ''
    set -l value $current
    if test -n "$skip"
        set kind (__quaid_kind "$command" $skip)
    else if string match -q -- '--*=*' $current
        set -l parts (string split -m 1 = -- $current)
        set kind (__quaid_kind "$command" $parts[1])
        set before "$parts[1]="
        set value $parts[2]
    else if string match -q -- '-*' $current
        set kind @options
    else
        set kind (__quaid_kind "$command" (math $slot + 1))
        test -n "$kind"; or set kind (__quaid_kind "$command" '*')
        if test $slot -eq 0
            for entry in (__quaid_table "$command")
                set -l parts (string split \t -- $entry)
                test "$parts[2]" = @command; and printf '%s\t%s\n' $parts[1] $parts[3]
            end
        end
    end
    switch "$kind"
        case @options
            for entry in (__quaid_table "$command")
                set -l parts (string split \t -- $entry)
                string match -q -- '-*' $parts[1]; and printf '%s\t%s\n' $parts[1] $parts[3]
            end
        case @files
            for each in (__fish_complete_path $value)
                echo $before$each
            end
        case @folders '@files:*'
            # Folders end in /; behind the path stands what it is.
            set -l endings (string replace -a , '|' -- (string replace -r '^@(folders|files:)' '' -- $kind))
            for each in (__fish_complete_path $value)
                if string match -qr -- '/$' (string split \t -- $each)[1]
                    echo $before$each
                else if test -n "$endings"; and string match -qr -- "\.($endings)\$" (string split \t -- $each)[1]
                    echo $before$each
                end
            end
        case @any - @command ''
        case '@*'
            set -l start (string unescape -- "$value" 2>/dev/null; or echo)
            for each in ($program completion (string sub -s 2 -- $kind) $place -- "$start" 2>/dev/null </dev/null)
                echo $before$each
            end
        case '*'
            for each in (string split '|' -- $kind)
                echo $before$each
            end
    end
end

complete -c quaid -f -a '(__quaid_complete)'
complete -c ai-kb -f -a '(__quaid_complete)'
