;;; ai-kb.el --- Browse and edit a knowledge base of org-roam nodes  -*- lexical-binding: t; -*-

;; Version: 0.1.0
;; Package-Requires: ((emacs "27.1") (org-roam "2.0"))
;; Keywords: outlines, tools
;; SPDX-License-Identifier: MIT

;;; Commentary:

;; A knowledge base is a git repository of org-roam nodes that agents and people write through one
;; program, `ai-kb'.  This file is how a person reads and edits it:
;;
;; - `ai-kb-switch' (C-c n a) points org-roam at the knowledge base, `ai-kb-leave' (C-c n A) puts
;;   everything back exactly as it was.  A marker file tells the next Emacs that this one was killed
;;   while switched (`ai-kb-reassert').
;; - `ai-kb-global-mode' turns on `ai-kb-mode' in nodes.  A save runs `ai-kb commit' in the
;;   background: index, lint, commit.  What lint refuses is shown in *ai-kb-lint*; the buffer can
;;   always be edited and saved.
;; - `ai-kb-dashboard', `ai-kb-find-node', `ai-kb-search', `ai-kb-show-node', `ai-kb-backlinks',
;;   `ai-kb-map' and `ai-kb-db-sync' look around (C-c n k).
;;
;; Nothing that stands in a node is evaluated: in files of the knowledge base there are no local
;; variables, no setup files and no link abbreviations that call functions.
;;
;; Set it up with:
;;
;;   (load "…/ai-kb.el")          ; `ai-kb emacs-file' says where it is
;;   (ai-kb-global-mode 1)

;;; Code:

(require 'cl-lib)
(require 'compile)
(require 'json)
(require 'seq)
(require 'subr-x)

;; Of org and org-roam, which are loaded only when they are needed.
(defvar org-agenda-files)
(defvar org-confirm-babel-evaluate)
(defvar org-link-elisp-confirm-function)
(defvar org-link-shell-confirm-function)
(defvar org-roam-db-update-on-save)
(defvar org-startup-options)
(declare-function org-roam-node-find "ext:org-roam-node")
(declare-function org-roam-db--close "ext:org-roam-db")
(declare-function org-roam-db-update-file "ext:org-roam-db")

(defgroup ai-kb nil
  "A knowledge base of org-roam nodes in a git repository."
  :group 'org
  :prefix "ai-kb-")

(defcustom ai-kb-program "ai-kb"
  "The program `ai-kb', or a list of a program and the arguments before the verb."
  :type '(choice string (repeat string)))

(defcustom ai-kb-directory
  (or (getenv "QUAID_KB_STORE")
      (getenv "AI_KB_DIR")
      (expand-file-name "ai-kb" (or (getenv "XDG_DATA_HOME") "~/.local/share")))
  "The folder of the knowledge base."
  :type 'directory)

(defcustom ai-kb-db-location nil
  "Where org-roam's index of the knowledge base is; nil: in its folder .git/ai-kb."
  :type '(choice (const :tag "In .git/ai-kb" nil) file))

(defcustom ai-kb-exclude-regexps
  '("\\`raw/" "\\`index[^/]*\\.org\\'" "\\`AGENT_CONTRACT\\.org\\'" "\\`\\(?:[^/]+/\\)*[.#]")
  "Files that are no nodes.
Each is matched against the path inside the knowledge base, from its
beginning."
  :type '(repeat regexp))

(defcustom ai-kb-keymap-prefix "C-c n"
  "The keys before those of `ai-kb-prefix-map'; nil: none.
Takes effect when `ai-kb-global-mode' is turned on."
  :type '(choice (const nil) string))

(defcustom ai-kb-neutralised-hooks
  '(org-roam-capture-new-node-hook
    org-roam-find-file-hook
    org-roam-post-node-insert-hook
    org-roam-dailies-find-file-hook
    org-capture-prepare-finalize-hook
    org-capture-before-finalize-hook
    org-capture-after-finalize-hook
    org-after-todo-state-change-hook
    org-todo-repeat-hook
    org-trigger-hook
    org-after-refile-insert-hook)
  "Hooks on which no personal function runs while switched.
What org-roam itself puts there stays."
  :type '(repeat symbol))

(defcustom ai-kb-personal-commands
  '(org-roam-dailies--capture
    org-roam-dailies-find-directory
    org-roam-dailies-goto-next-note
    org-roam-dailies-goto-previous-note
    org-store-new-agenda-file-list)
  "Functions that are refused while switched, because they lead to personal notes.
Add your own ways to journals, topics and recipes."
  :type '(repeat function))

(defcustom ai-kb-profile-extra nil
  "Further variables and the values that they have while switched."
  :type '(alist :key-type symbol :value-type sexp))

(defcustom ai-kb-sync-after-commit t
  "Whether org-roam's index follows after a commit while switched."
  :type 'boolean)

;;;; Where things are

(defconst ai-kb--uuid
  "[[:xdigit:]]\\{8\\}\\(?:-[[:xdigit:]]\\{4\\}\\)\\{3\\}-[[:xdigit:]]\\{12\\}"
  "What an ID of a node looks like.")

(defun ai-kb--root ()
  "The folder of the knowledge base, with all links followed."
  (file-name-as-directory (file-truename (expand-file-name ai-kb-directory))))

(defun ai-kb--path (file)
  "The path of FILE inside the knowledge base, or nil when it is not in there."
  (when (and file (not (file-remote-p file)))
    (let ((root (ai-kb--root))
          (true (file-truename file)))
      (when (string-prefix-p root true)
        (substring true (length root))))))

(defvar-local ai-kb--known-path nil
  "A file, the folder of the knowledge base, and the one's path in the other.")

(defun ai-kb--buffer-path ()
  "The path of this buffer's file inside the knowledge base, or nil.
Links are followed once for each file: this is asked for often."
  (let ((file (buffer-file-name (buffer-base-buffer))))
    (when file
      (unless (and (equal (car ai-kb--known-path) file)
                   (equal (cadr ai-kb--known-path) ai-kb-directory))
        (setq ai-kb--known-path (cons file (cons ai-kb-directory (ai-kb--path file)))))
      (cddr ai-kb--known-path))))

(defun ai-kb--node-path-p (path)
  "Whether a file with this PATH inside the knowledge base is a node."
  (and path
       (string-suffix-p ".org" path)
       (not (seq-some (lambda (regexp) (string-match-p regexp path)) ai-kb-exclude-regexps))))

(defun ai-kb--ours (name)
  "The file NAME among those that belong to this machine only."
  (expand-file-name name (expand-file-name ".git/ai-kb" (ai-kb--root))))

(defun ai-kb--database ()
  "Where org-roam's index of the knowledge base is."
  (if ai-kb-db-location (expand-file-name ai-kb-db-location) (ai-kb--ours "org-roam.db")))

(defun ai-kb--need-store ()
  "Say plainly when there is no knowledge base."
  (unless (file-directory-p (expand-file-name ".git" (ai-kb--root)))
    (user-error "There is no knowledge base in %s; `ai-kb init' makes one"
                (abbreviate-file-name ai-kb-directory))))

(defun ai-kb--need-org-roam ()
  "Load org-roam, or say plainly that it is not there."
  (unless (and (require 'org-roam nil t) (require 'org-roam-dailies nil t))
    (user-error "This needs org-roam 2, which is not installed (package-install org-roam)")))

;;;; Calling the program

(defvar ai-kb--calls 0
  "How many programs are running.")

(defun ai-kb--command (arguments)
  "The whole command of the program with ARGUMENTS."
  (append (if (listp ai-kb-program) ai-kb-program (list ai-kb-program)) arguments))

(defun ai-kb--environment ()
  "What the program is to know.
Which knowledge base it is, and this Emacs with its libraries."
  (append
   (list (concat "QUAID_KB_STORE=" (directory-file-name (ai-kb--root)))
         (concat "PATH=" (string-join (list (directory-file-name invocation-directory)
                                            (or (getenv "PATH") ""))
                                      path-separator))
         (concat "EMACSLOADPATH=" (string-join (ai-kb--libraries) path-separator) path-separator))
   process-environment))

(defun ai-kb--libraries ()
  "The folders of `load-path' that do not come with Emacs itself."
  (let ((own (expand-file-name "../lisp" data-directory)))
    (seq-remove (lambda (folder) (string-prefix-p own folder)) load-path)))

(defun ai-kb--call (arguments callback)
  "Run the program with ARGUMENTS and --json, and do not wait for it.
CALLBACK gets what it printed, and the problem when there is one: an
alist with a message."
  (ai-kb--start
   (ai-kb--command (append (list (car arguments) "--json") (cdr arguments)))
   nil
   (lambda (status out err)
     (let ((record (ai-kb--parsed out)))
       (funcall callback record (unless record (ai-kb--problem status err)))))))

(defun ai-kb--start (command input callback)
  "Run COMMAND, a list, with INPUT, and do not wait for it.
CALLBACK gets exit status, output and errors.  A program that cannot
be started has the status 127."
  (let* ((process-environment (ai-kb--environment))
         (process-connection-type nil)
         (default-directory temporary-file-directory)
         (out (generate-new-buffer " *ai-kb out*"))
         (err (generate-new-buffer " *ai-kb err*"))
         (open 2)
         process
         (ended
          (lambda (&rest _)
            (setq open (1- open))
            (when (and (<= open 0) (buffer-live-p out))
              (let ((status (process-exit-status process))
                    (texts (mapcar (lambda (buffer) (with-current-buffer buffer (buffer-string)))
                                   (list out err))))
                (setq ai-kb--calls (1- ai-kb--calls))
                (kill-buffer out)
                (kill-buffer err)
                (apply callback status texts))))))
    (condition-case problem
        (let ((pipe (make-pipe-process :name "ai-kb-err" :buffer err :noquery t
                                       :coding 'utf-8-unix :sentinel ended)))
          (condition-case nil
              (setq process (make-process :name "ai-kb" :command command :buffer out :stderr pipe
                                          :noquery t :connection-type 'pipe
                                          :coding 'utf-8-unix
                                          :sentinel (lambda (each _)
                                                      (unless (process-live-p each)
                                                        (funcall ended)))))
            (error (set-process-sentinel pipe #'ignore)
                   (delete-process pipe)
                   (error "%s cannot be started; is it installed, and in `exec-path'?"
                          (car command))))
          (setq ai-kb--calls (1+ ai-kb--calls))
          (ignore-errors                ; it may have ended already
            (when input (process-send-string process input))
            (process-send-eof process))
          process)
      (error
       (kill-buffer out)
       (kill-buffer err)
       (funcall callback 127 "" (error-message-string problem))
       nil))))

(defun ai-kb--parsed (text)
  "The JSON that TEXT is, or nil."
  (ignore-errors
    (if (fboundp 'json-parse-string)
        (json-parse-string text :object-type 'alist :array-type 'list
                           :null-object nil :false-object nil)
      (let ((json-object-type 'alist) (json-array-type 'list) (json-key-type 'symbol)
            (json-null nil) (json-false nil))
        (json-read-from-string text)))))

(defun ai-kb--problem (status err)
  "What went wrong, out of exit STATUS and ERR, what the program said about it."
  (let ((told (seq-some (lambda (line) (alist-get 'error (ai-kb--parsed line)))
                        (split-string err "\n" t))))
    (or told
        (list (cons 'message
                    (or (car (last (split-string err "\n" t)))
                        (format "ai-kb ended with %s" status)))))))

(defun ai-kb--get (record &rest keys)
  "What stands in RECORD below KEYS."
  (dolist (key keys record)
    (setq record (alist-get key record))))

(defun ai-kb--ask (arguments callback)
  "Run the program with ARGUMENTS; CALLBACK gets its record; a problem is told."
  (ai-kb--need-store)
  (ai-kb--call arguments
               (lambda (record problem)
                 (if problem
                     (message "ai-kb: %s" (ai-kb--get problem 'message))
                   (funcall callback record)))))

;;;; How it stands

(defconst ai-kb-dashboard-buffer "*ai-kb*"
  "The buffer of the dashboard.")

(defvar ai-kb--state 'unknown
  "What the last run said: unknown, running, clean, failing or error.")
(defvar ai-kb--detail ""
  "More about the state, in words.")
(defvar ai-kb--failing 0
  "How many findings stop a commit.")
(defvar ai-kb--status nil
  "What `ai-kb status' said last.")
(defvar ai-kb--offline nil
  "Why the remote was not reached at the last commit, or nil.")
(defvar ai-kb--sync-state nil
  "What became of the last sync.
One of running, synced and fresh, or a problem as a string.")

(defun ai-kb--set-state (state &optional detail)
  "Remember STATE and DETAIL and show them."
  (setq ai-kb--state state
        ai-kb--detail (or detail ""))
  (ai-kb--show-state))

(defun ai-kb--show-state ()
  "Show in mode lines and on the dashboard how things stand."
  (force-mode-line-update t)
  (when (get-buffer-window ai-kb-dashboard-buffer t)
    (ai-kb--draw-dashboard)))

(defun ai-kb--standing ()
  "One or two words for how things stand."
  (let ((ahead (or (ai-kb--get ai-kb--status 'ahead) 0)))
    (pcase ai-kb--state
      ('running "running")
      ('failing (format "failing %d" ai-kb--failing))
      ('error "error")
      (_ (cond ((ai-kb--get ai-kb--status 'diverged) "diverged")
               ((ai-kb--get ai-kb--status 'uncommitted) "uncommitted")
               (ai-kb--offline (format "offline, ahead %d" ahead))
               ((> ahead 0) (format "ahead %d" ahead))
               ((or (ai-kb--get ai-kb--status 'nodes) (eq ai-kb--state 'clean)) "clean")
               (t "?"))))))

(defun ai-kb--lighter ()
  "The part of the mode line that is about the knowledge base."
  (let ((standing (ai-kb--standing)))
    (list " KB:"
          (propertize (replace-regexp-in-string "%" "%%" standing)
                      'face (cond ((memq ai-kb--state '(failing error)) 'error)
                                  ((member standing '("clean" "running" "?")) nil)
                                  (t 'warning))
                      'help-echo ai-kb--detail))))

(defun ai-kb-refresh ()
  "Ask again how the knowledge base stands."
  (interactive)
  (ai-kb--ask '("status")
              (lambda (record)
                (setq ai-kb--status record)
                (ai-kb--show-state))))

;;;; A save: index, lint, commit

(defvar ai-kb--committing nil
  "Whether a commit is running.")
(defvar ai-kb--again nil
  "Whether something was saved since the running commit began.")
(defvar ai-kb--in-pipeline nil
  "Bound while this file itself touches buffers: saves then start nothing.")

(defun ai-kb--stamp ()
  "Set the day in the node's :UPDATED: before it is saved.
The commit would do it as well, but behind the buffer's back."
  (unless ai-kb--in-pipeline
    (save-excursion
      (save-restriction
        (widen)
        (goto-char (point-min))
        (let ((case-fold-search t)
              (today (format-time-string "%Y-%m-%d"))
              (end (and (looking-at-p "[ \t]*:PROPERTIES:[ \t]*$")
                        (save-excursion (re-search-forward "^[ \t]*:END:[ \t]*$" nil t)))))
          (when (and end
                     (re-search-forward "^[ \t]*:UPDATED:[ \t]+\\([0-9]\\{4\\}-[0-9][0-9]-[0-9][0-9]\\)[ \t]*$" end t)
                     (string-lessp (match-string 1) today))
            (replace-match today t t nil 1)))))))

(defun ai-kb--after-save ()
  "Have what was saved indexed, linted and committed."
  (unless ai-kb--in-pipeline
    (ai-kb-commit)))

;;;###autoload
(defun ai-kb-commit ()
  "Commit what was changed, after index and lint, in the background.
While one commit is running, another one is only noted; it follows
as soon as the first has ended."
  (interactive)
  (if ai-kb--committing
      (setq ai-kb--again t)
    (setq ai-kb--committing t
          ai-kb--again nil)
    (ai-kb--set-state 'running)
    (ai-kb--call '("commit") #'ai-kb--committed)))

(defun ai-kb--committed (record problem)
  "A commit has ended with RECORD or PROBLEM."
  (setq ai-kb--committing nil)
  (cond
   (ai-kb--again (ai-kb-commit))        ; this run told of a text that is no more
   ((ai-kb--get problem 'findings) (ai-kb--refused (ai-kb--get problem 'findings)))
   (problem
    (ai-kb--set-state 'error (ai-kb--get problem 'message))
    (message "ai-kb: saved, not committed: %s" (ai-kb--get problem 'message)))
   (t (ai-kb--accepted record))))

(defun ai-kb--refused (findings)
  "Show the FINDINGS because of which nothing was committed."
  (setq ai-kb--failing (length findings))
  (ai-kb--set-state 'failing (ai-kb--get (car findings) 'message))
  (ai-kb--show-findings findings "Saved, but not committed.  Mend this, and save again.")
  (message "ai-kb: saved, not committed: %d finding%s" ai-kb--failing
           (if (= ai-kb--failing 1) "" "s")))

(defun ai-kb--accepted (record)
  "What was changed is committed; RECORD is about it."
  (let ((offline (ai-kb--get record 'offline)))
    (setq ai-kb--failing 0
          ai-kb--offline (unless (string-empty-p (or offline "")) offline)))
  (ai-kb--clear-findings)
  (ai-kb--set-state 'clean ai-kb--offline)
  (ai-kb--revert-unmodified)
  (ai-kb-refresh)
  (when (and ai-kb-sync-after-commit (ai-kb-switched-p) (ai-kb--get record 'paths))
    (ai-kb-db-sync)))

(defun ai-kb--revert-unmodified ()
  "Read again what the commit has changed: the index, and what was fetched."
  (let ((ai-kb--in-pipeline t))
    (dolist (buffer (buffer-list))
      (with-current-buffer buffer
        (when (and buffer-file-name
                   (not (buffer-modified-p))
                   (ai-kb--buffer-path)
                   (file-exists-p buffer-file-name)
                   (not (verify-visited-file-modtime buffer)))
          (with-demoted-errors "ai-kb: %S"
            (revert-buffer t t t)))))))

(defun ai-kb--finish-before-exit ()
  "Give a running commit a moment to end before Emacs does."
  (let ((until (+ (float-time) 5)))
    (while (and ai-kb--committing (< (float-time) until))
      (accept-process-output nil 0.1))))

;;;; What lint says

(defconst ai-kb-lint-buffer "*ai-kb-lint*"
  "The buffer in which findings are shown.")

(define-compilation-mode ai-kb-lint-mode "ai-kb-lint"
  "Findings of `ai-kb lint'; `next-error' goes from one to the next."
  (setq-local compilation-error-regexp-alist '(("^\\([^\n:][^\n]*?\\):\\([0-9]+\\): " 1 2)))
  (setq-local compilation-scroll-output nil))

(defun ai-kb--show-findings (findings head)
  "Show FINDINGS below HEAD, and leave the selected window selected."
  (let ((buffer (get-buffer-create ai-kb-lint-buffer)))
    (with-current-buffer buffer
      (let ((inhibit-read-only t))
        (unless (derived-mode-p 'ai-kb-lint-mode) (ai-kb-lint-mode))
        (setq default-directory (ai-kb--root))
        (compilation-forget-errors)
        (erase-buffer)
        (insert head "\n\n")
        (dolist (each findings)
          (insert (format "%s:%d: %s; %s\n" (ai-kb--get each 'path) (ai-kb--get each 'line)
                          (ai-kb--one-line (ai-kb--get each 'message))
                          (ai-kb--one-line (ai-kb--get each 'remedy)))))
        (set-buffer-modified-p nil)
        (goto-char (point-min))))
    (setq next-error-last-buffer buffer)
    (save-selected-window
      (let ((window (display-buffer buffer '((display-buffer-reuse-window
                                              display-buffer-below-selected
                                              display-buffer-pop-up-window)
                                             (inhibit-same-window . t)
                                             (window-height . 10)))))
        (when window (set-window-start window (with-current-buffer buffer (point-min))))))))

(defun ai-kb--clear-findings ()
  "Take away findings that hold no more."
  (let ((buffer (get-buffer ai-kb-lint-buffer)))
    (when buffer
      (with-current-buffer buffer
        (let ((inhibit-read-only t))
          (compilation-forget-errors)
          (erase-buffer)
          (insert "Nothing stops a commit.\n")
          (set-buffer-modified-p nil)))
      (dolist (window (get-buffer-window-list buffer nil t))
        (quit-window nil window)))))

(defun ai-kb--one-line (text)
  "TEXT without line ends."
  (replace-regexp-in-string "[\n\r]+" " " (or text "")))

;;;###autoload
(defun ai-kb-lint ()
  "Lint the whole knowledge base and show what is found."
  (interactive)
  (ai-kb--ask '("lint")
              (lambda (record)
                (let ((findings (ai-kb--get record 'findings)))
                  (if findings
                      (ai-kb--show-findings findings "What lint says; some of it may be style.")
                    (ai-kb--clear-findings)
                    (message "ai-kb: nothing is wrong"))))))

;;;; Nothing of a node is evaluated

(defun ai-kb--without-local-variables (function &rest arguments)
  "Call FUNCTION with ARGUMENTS.
In the knowledge base there are no local variables."
  (if (ai-kb--buffer-path)
      (let ((enable-local-variables nil)
            (enable-local-eval nil)
            (enable-dir-local-variables nil))
        (apply function arguments))
    (apply function arguments)))

(defun ai-kb--as-found (function &optional find-file)
  "Call FUNCTION, which is `normal-mode', with FIND-FILE.
In the knowledge base it is always called as for a file that is just
found: otherwise it would turn local variables on for itself."
  (if (ai-kb--buffer-path)
      (ai-kb--without-local-variables function t)
    (funcall function find-file)))

(defvar ai-kb--reading-node nil
  "Bound while org reads what a node says of itself.")

(defun ai-kb--plain-reading (function &rest arguments)
  "Call FUNCTION, one of those for the keywords of a file, with ARGUMENTS.
A node cannot have LaTeX run nor images shown by being opened."
  (if (ai-kb--buffer-path)
      (let ((ai-kb--reading-node t)
            (org-startup-options
             (seq-remove (lambda (each) (member (car each) '("latexpreview" "inlineimages")))
                         org-startup-options)))
        (apply function arguments))
    (apply function arguments)))

(defun ai-kb--no-abbreviation (function link)
  "Call FUNCTION with LINK.
In the knowledge base a link stands for itself: the #+LINK: of an
older org can name functions to call."
  (if (ai-kb--buffer-path) link (funcall function link)))

(defun ai-kb--no-setup-file (function &rest arguments)
  "Call FUNCTION with ARGUMENTS.
Nodes read no other files, and nothing from the network."
  (if (or ai-kb--reading-node (ai-kb--buffer-path)) "" (apply function arguments)))

(defconst ai-kb--guards
  '((hack-local-variables . ai-kb--without-local-variables)
    (normal-mode . ai-kb--as-found)
    (org-mode . ai-kb--plain-reading)
    (org-set-regexps-and-options . ai-kb--plain-reading)
    (org-collect-keywords . ai-kb--plain-reading)
    (org-link-expand-abbrev . ai-kb--no-abbreviation)
    (org-file-contents . ai-kb--no-setup-file))
  "Functions that could evaluate or fetch what a node names.
Each with what stands before it.")

(defun ai-kb--guard (on)
  "Put all guards up if ON, else take them down."
  (when on (require 'org))
  (dolist (each ai-kb--guards)
    (cond ((not on) (advice-remove (car each) (cdr each)))
          ((fboundp (car each)) (advice-add (car each) :around (cdr each))))))

;;;; The mode of a node

(defvar ai-kb-command-map
  (let ((map (make-sparse-keymap)))
    (define-key map "d" '("dashboard" . ai-kb-dashboard))
    (define-key map "f" '("find node" . ai-kb-find-node))
    (define-key map "s" '("search" . ai-kb-search))
    (define-key map "n" '("show node" . ai-kb-show-node))
    (define-key map "b" '("backlinks" . ai-kb-backlinks))
    (define-key map "m" '("map" . ai-kb-map))
    (define-key map "y" '("sync" . ai-kb-db-sync))
    (define-key map "l" '("lint" . ai-kb-lint))
    (define-key map "c" '("commit" . ai-kb-commit))
    (define-key map "p" '("push" . ai-kb-push))
    (define-key map "D" '("doctor" . ai-kb-doctor))
    map)
  "Commands of the knowledge base.")
(fset 'ai-kb-command-map ai-kb-command-map)

(defvar ai-kb-prefix-map
  (let ((map (make-sparse-keymap)))
    (define-key map "a" '("to ai-kb" . ai-kb-switch))
    (define-key map "A" '("leave ai-kb" . ai-kb-leave))
    (define-key map "k" '("ai-kb" . ai-kb-command-map))
    map)
  "Keys below `ai-kb-keymap-prefix'; others there keep their meaning.")

(defvar ai-kb-global-mode-map (make-sparse-keymap)
  "The keys of `ai-kb-global-mode'.")

;;;###autoload
(define-minor-mode ai-kb-mode
  "A node of the knowledge base.
A save has it indexed, linted and committed in the background."
  :lighter (:eval (ai-kb--lighter))
  (if ai-kb-mode
      (progn
        (add-hook 'before-save-hook #'ai-kb--stamp nil t)
        (add-hook 'after-save-hook #'ai-kb--after-save nil t)
        ;; Whatever org-roam's index is at the moment, a save here puts nothing into it.
        (setq-local org-roam-db-update-on-save nil)
        (setq-local org-confirm-babel-evaluate t)
        (setq-local org-link-elisp-confirm-function #'yes-or-no-p)
        (setq-local org-link-shell-confirm-function #'yes-or-no-p)
        (dolist (hook (ai-kb--local-hooks))
          (set (make-local-variable hook) (ai-kb--only-org-roams hook)))
        (unless ai-kb--status
          (setq ai-kb--status '((ahead . 0))) ; asked for, and not known yet
          (ai-kb--call '("status") (lambda (record _)
                                     (setq ai-kb--status record)
                                     (ai-kb--show-state)))))
    (remove-hook 'before-save-hook #'ai-kb--stamp t)
    (remove-hook 'after-save-hook #'ai-kb--after-save t)
    (mapc #'kill-local-variable
          (append '(org-roam-db-update-on-save org-confirm-babel-evaluate
                    org-link-elisp-confirm-function org-link-shell-confirm-function)
                  (ai-kb--local-hooks)))))

(defun ai-kb--local-hooks ()
  "Hooks that are silent in every node, whether switched or not.
Those of captures are not among them: org-roam puts its own
functions there from outside."
  (seq-filter (lambda (hook)
                (and (boundp hook) (not (string-match-p "capture\\|roam" (symbol-name hook)))))
              ai-kb-neutralised-hooks))

(defun ai-kb--turn-on-maybe ()
  "Turn `ai-kb-mode' on in a node."
  (when (and (derived-mode-p 'org-mode)
             (not (buffer-base-buffer))
             (ai-kb--node-path-p (ai-kb--buffer-path)))
    (ai-kb-mode 1)))

;;;###autoload
(define-minor-mode ai-kb-global-mode
  "Keys for the knowledge base, and `ai-kb-mode' in all its nodes."
  :global t
  :keymap ai-kb-global-mode-map
  (ai-kb--guard ai-kb-global-mode)
  (if ai-kb-global-mode
      (progn
        (when ai-kb-keymap-prefix
          (define-key ai-kb-global-mode-map (kbd ai-kb-keymap-prefix) ai-kb-prefix-map))
        (add-hook 'find-file-hook #'ai-kb--turn-on-maybe)
        (add-hook 'after-change-major-mode-hook #'ai-kb--turn-on-maybe)
        (add-hook 'kill-emacs-hook #'ai-kb--finish-before-exit)
        (dolist (buffer (buffer-list))
          (with-current-buffer buffer (ai-kb--turn-on-maybe))))
    (remove-hook 'find-file-hook #'ai-kb--turn-on-maybe)
    (remove-hook 'after-change-major-mode-hook #'ai-kb--turn-on-maybe)
    (remove-hook 'kill-emacs-hook #'ai-kb--finish-before-exit)
    (dolist (buffer (buffer-list))
      (with-current-buffer buffer (when ai-kb-mode (ai-kb-mode -1))))))

;;;; The profile

(defvar ai-kb--saved nil
  "While switched: each variable with whether it was bound, and its value.")
(defvar ai-kb--saved-elsewhere nil
  "Personal files of org-roam that were saved while switched.")

(defun ai-kb-switched-p ()
  "Whether org-roam is the knowledge base's at the moment."
  (and ai-kb--saved t))

(defun ai-kb--template (key type)
  "A capture template under KEY for a node of this TYPE."
  `(,key ,type plain "%?"
         :target (file+head
                  "%<%Y%m%d%H%M%S>-${slug}.org"
                  ,(concat ":PROPERTIES:\n:PROJECTS: :general:\n"
                           ":CREATED: %<%Y-%m-%d>\n:UPDATED: %<%Y-%m-%d>\n"
                           ":CREATED_BY: human\n:CONFIDENCE: user-stated\n:VISIBILITY: personal\n"
                           ":SOURCE: written %<%Y-%m-%d>\n:STATUS: current\n"
                           ":SUMMARY: ${summary}\n:END:\n"
                           "#+title: ${title}\n#+filetags: :" type ":\n"))
         :unnarrowed t
         :empty-lines-before 1))

(defconst ai-kb--templates
  (mapcar (lambda (each) (ai-kb--template (car each) (cdr each)))
          '(("p" . "principle") ("f" . "preference") ("c" . "procedure")
            ("o" . "observation") ("r" . "reference")))
  "Capture templates of the knowledge base.")

(defun ai-kb--org-roam-excludes ()
  "`ai-kb-exclude-regexps' for org-roam.
Some versions of it compare whole paths."
  (let ((top (concat "\\`\\(?:" (regexp-quote (ai-kb--root)) "\\)?")))
    (mapcar (lambda (regexp) (concat top (string-remove-prefix "\\`" regexp)))
            ai-kb-exclude-regexps)))

(defun ai-kb--profile ()
  "Every variable that has another value while switched, with that value."
  (append
   `((org-roam-directory . ,(ai-kb--root))
     (org-roam-db-location . ,(ai-kb--database))
     (org-roam-file-exclude-regexp . ,(ai-kb--org-roam-excludes))
     (org-roam-file-extensions . ("org"))
     (org-roam-list-files-commands . nil)
     (org-roam-db-node-include-function . ai-kb--always-a-node)
     (org-roam-db-update-on-save . nil)
     (org-roam-link-auto-replace . nil)
     (org-roam-node-display-template
      . ,(concat "${title:60} " (propertize "${tags:30}" 'face 'org-tag)))
     (org-roam-capture-templates . ,ai-kb--templates)
     (org-roam-capture-ref-templates . nil)
     (org-roam-extract-new-file-path . "%<%Y%m%d%H%M%S>-${slug}.org")
     (org-roam-dailies-directory . ".no-dailies/")
     (org-roam-dailies-capture-templates . nil)
     (org-id-method . uuid)
     (org-id-prefix . nil)
     (org-id-track-globally . nil)
     ;; The same, but a list of its own: what is added to it is gone afterwards.
     (org-agenda-files . ,(let ((files (default-value 'org-agenda-files)))
                            (if (listp files) (copy-sequence files) files))))
   ai-kb-profile-extra))

(defun ai-kb--always-a-node ()
  "Whatever has an ID is a node: there is no personal filter here."
  t)

(defun ai-kb--only-org-roams (hook)
  "The functions on HOOK that org-roam itself has put there."
  (let ((value (if (local-variable-p hook) (symbol-value hook) (default-value hook))))
    (seq-filter (lambda (each)
                  (and (symbolp each)
                       (string-match-p "\\`org-roam\\(?:-[a-z]+\\)*--" (symbol-name each))))
                (if (functionp value) (list value) value))))

(defun ai-kb--silent-hooks ()
  "Each of `ai-kb-neutralised-hooks' with what is left on it while switched."
  (with-temp-buffer                     ; where no hook has a value of its own
    (mapcar (lambda (hook) (cons hook (ai-kb--only-org-roams hook)))
            (seq-filter #'default-boundp ai-kb-neutralised-hooks))))

(defun ai-kb--save (variable)
  "VARIABLE, whether it is bound, and its default value."
  (if (default-boundp variable)
      (list variable t (default-value variable))
    (list variable nil)))

(defun ai-kb--restore (saved)
  "Give a variable its value back, as in SAVED."
  (pcase saved
    (`(,variable t ,value) (set-default variable value))
    (`(,variable nil) (ai-kb--unbind variable))))

(defun ai-kb--unbind (variable)
  "Make VARIABLE unbound again; buffers keep values of their own."
  (with-temp-buffer (makunbound variable)))

;;;###autoload
(defun ai-kb-switch ()
  "Point org-roam at the knowledge base, until `ai-kb-leave'."
  (interactive)
  (ai-kb--need-org-roam)
  (ai-kb--need-store)
  (if (ai-kb-switched-p)
      (message "ai-kb: org-roam is the knowledge base's already")
    (ai-kb-global-mode 1)
    (let* ((profile (append (ai-kb--profile) (ai-kb--silent-hooks)))
           (saved (mapcar (lambda (each) (ai-kb--save (car each))) profile)))
      (ai-kb--mark profile saved)
      (setq ai-kb--saved saved
            ai-kb--saved-elsewhere nil)
      (dolist (each profile) (set-default (car each) (cdr each))))
    (dolist (command ai-kb-personal-commands)
      (when (fboundp command) (advice-add command :before #'ai-kb--refuse)))
    (advice-add 'org-roam-list-files :filter-return #'ai-kb--really-inside)
    (add-hook 'after-save-hook #'ai-kb--note-personal-save)
    (add-hook 'kill-emacs-hook #'ai-kb-leave -90)
    (ai-kb-db-sync)
    (ai-kb-refresh)
    (message "ai-kb: org-roam is the knowledge base's now; %s brings your own back"
             (substitute-command-keys "\\[ai-kb-leave]"))))

;;;###autoload
(defun ai-kb-leave ()
  "Give org-roam back everything that it had before `ai-kb-switch'."
  (interactive)
  (if (not (ai-kb-switched-p))
      (message "ai-kb: org-roam is your own already")
    (ignore-errors (org-roam-db--close))
    (dolist (command ai-kb-personal-commands)
      (when (fboundp command) (advice-remove command #'ai-kb--refuse)))
    (advice-remove 'org-roam-list-files #'ai-kb--really-inside)
    (remove-hook 'after-save-hook #'ai-kb--note-personal-save)
    (remove-hook 'kill-emacs-hook #'ai-kb-leave)
    (mapc #'ai-kb--restore ai-kb--saved)
    (setq ai-kb--saved nil)
    (ignore-errors (delete-file (ai-kb--marker)))
    (ai-kb--catch-up)
    (message "ai-kb: org-roam is your own again")))

(defun ai-kb--refuse (&rest _)
  "Stop a command that leads to personal notes."
  (user-error "This is for your own notes; `ai-kb-leave' brings them back"))

(defun ai-kb--really-inside (files)
  "Those of FILES that no link leads out of the knowledge base."
  (seq-filter #'ai-kb--path files))

(defun ai-kb--note-personal-save ()
  "Note a personal file that org-roam would have indexed now."
  (when (and buffer-file-name
             (memq 'org-roam-db-autosync--try-update-on-save-h
                   (buffer-local-value 'after-save-hook (current-buffer)))
             (not (ai-kb--buffer-path)))
    (cl-pushnew buffer-file-name ai-kb--saved-elsewhere :test #'equal)))

(defun ai-kb--catch-up ()
  "Have org-roam index what was saved meanwhile.
A buffer that was changed since waits for its next save."
  (dolist (file ai-kb--saved-elsewhere)
    (let ((buffer (find-buffer-visiting file)))
      (unless (and buffer (buffer-modified-p buffer))
        (with-demoted-errors "ai-kb: %S"
          (org-roam-db-update-file file)))))
  (setq ai-kb--saved-elsewhere nil))

;;;; After an abnormal exit

(defun ai-kb--marker (&optional pid)
  "The file that stands for a switched Emacs PID."
  (locate-user-emacs-file (format "ai-kb-switched-%d.eld" (or pid (emacs-pid)))))

(defun ai-kb--mark (profile saved)
  "Write down that this Emacs is switched.
For each variable of PROFILE the personal value, which is among
SAVED, and ours; a value that cannot be read back is left out."
  (let (rows)
    (dolist (each profile)
      (pcase (assq (car each) saved)
        ((and `(,variable t ,value)
              (guard (and (ai-kb--readable-p value) (ai-kb--readable-p (cdr each)))))
         (push (list variable value (cdr each)) rows))))
    (make-directory user-emacs-directory t)
    (with-temp-file (ai-kb--marker)
      (set-buffer-file-coding-system 'utf-8-unix)
      (let ((print-length nil) (print-level nil) (print-circle t))
        (prin1 (list :pid (emacs-pid) :at (float-time) :store (ai-kb--root) :values rows)
               (current-buffer))))
    (set-file-modes (ai-kb--marker) #o600)))

(defun ai-kb--readable-p (value)
  "Whether VALUE comes back the same when it is printed and read."
  (ignore-errors
    (let ((print-length nil) (print-level nil) (print-circle t))
      (equal value (car (read-from-string (prin1-to-string value)))))))

;;;###autoload
(defun ai-kb-reassert ()
  "Make sure that personal settings hold if an Emacs was killed while switched.
What was saved meanwhile with the values of the knowledge base (by
customize, for instance) gets the personal ones back."
  (interactive)
  (dolist (file (file-expand-wildcards
                 (expand-file-name "ai-kb-switched-*.eld" user-emacs-directory)))
    (let ((mark (ignore-errors
                  (with-temp-buffer
                    (insert-file-contents file)
                    (read (current-buffer))))))
      (unless (ai-kb--still-running-p (plist-get mark :pid) (plist-get mark :at))
        (let ((mended (delq nil (mapcar #'ai-kb--mend (plist-get mark :values)))))
          (setq mended (append mended (ai-kb--mend-agenda (plist-get mark :store))))
          (delete-file file)
          (message "ai-kb: Emacs ended while switched; your own settings hold%s"
                   (if mended (format " again: %s" (mapconcat #'symbol-name mended ", ")) "")))))))

(defun ai-kb--still-running-p (pid at)
  "Whether the Emacs PID that was switched AT some time is alive."
  (and (integerp pid)
       (or (and (= pid (emacs-pid)) (ai-kb-switched-p))
           (and (/= pid (emacs-pid))
                (let* ((attributes (process-attributes pid))
                       (start (alist-get 'start attributes)))
                  (and attributes
                       (string-match-p "emacs" (or (alist-get 'comm attributes) ""))
                       (or (null start) (<= (float-time start) (+ 1 (or at 0))))))))))

(defun ai-kb--mend (row)
  "Give the variable of ROW its personal value if it has ours; return it if so."
  (pcase row
    ((and `(,variable ,personal ,ours)
          (guard (and (symbolp variable) (not (equal personal ours)))))
     (let ((saved (get variable 'saved-value))
           mended)
       (when (and (default-boundp variable) (equal (default-value variable) ours))
         (set-default variable personal)
         (setq mended variable))
       (when (and saved (equal (car saved) (custom-quote ours)))
         (customize-save-variable variable personal)
         (setq mended variable))
       mended))))

(defun ai-kb--mend-agenda (store)
  "Take files of STORE out of the agenda."
  (when (and store (boundp 'org-agenda-files) (listp org-agenda-files))
    (let ((kept (seq-remove (lambda (file)
                              (and (stringp file)
                                   (string-prefix-p store (file-truename (expand-file-name file)))))
                            org-agenda-files)))
      (unless (equal kept org-agenda-files)
        (if (get 'org-agenda-files 'saved-value)
            (customize-save-variable 'org-agenda-files kept)
          (setq org-agenda-files kept))
        (list 'org-agenda-files)))))

;;;; org-roam's index

(defvar ai-kb--sync-again nil
  "Whether a sync was asked for while one is running.")

;;;###autoload
(defun ai-kb-db-sync (&optional force)
  "Bring org-roam's index up to date, in the background, if nodes have changed.
With FORCE (a prefix argument) make it anew."
  (interactive "P")
  (if (eq ai-kb--sync-state 'running)
      (setq ai-kb--sync-again t)
    (ai-kb--need-store)
    (setq ai-kb--sync-state 'running
          ai-kb--sync-again nil)
    (ai-kb--show-state)
    (when (called-interactively-p 'interactive) (message "ai-kb: syncing…"))
    (ai-kb--call (append '("sync")
                         (when ai-kb-db-location (list "--database" (ai-kb--database)))
                         (when force '("--force")))
                 #'ai-kb--synced)))

(defun ai-kb--synced (record problem)
  "A sync has ended with RECORD or PROBLEM."
  (let* ((state (ai-kb--get record 'state))
         (trouble (or (ai-kb--get problem 'message) (ai-kb--get record 'problem))))
    (when (and (ai-kb-switched-p) (equal state "synced"))
      (ignore-errors (org-roam-db--close))) ; it is another file perhaps; the next question opens it again
    (setq ai-kb--sync-state (if (string-empty-p (or trouble "")) (intern (or state "error")) trouble))
    (ai-kb--show-state)
    (cond ((stringp ai-kb--sync-state) (message "ai-kb: sync: %s" ai-kb--sync-state))
          ((equal state "synced") (message "ai-kb: synced")))
    (when ai-kb--sync-again (ai-kb-db-sync))))

(defun ai-kb--wait-for-sync ()
  "Wait for a sync that is running; \\[keyboard-quit] ends the waiting."
  (when (eq ai-kb--sync-state 'running)
    (with-temp-message "ai-kb: syncing…"
      (while (eq ai-kb--sync-state 'running)
        (accept-process-output nil 0.1)))))

;;;; Looking around

;;;###autoload
(defun ai-kb-find-node ()
  "Find a node by its title, with org-roam.
Switch to the knowledge base first if need be."
  (interactive)
  (unless (ai-kb-switched-p) (ai-kb-switch))
  (ai-kb--wait-for-sync)
  (org-roam-node-find))

(defun ai-kb--visit (path)
  "Visit the file with this PATH inside the knowledge base."
  (ai-kb-global-mode 1)
  (let ((file (expand-file-name path (ai-kb--root))))
    (unless (ai-kb--path file)
      (user-error "%s is not in the knowledge base" path))
    (pop-to-buffer-same-window (find-file-noselect file))))

(define-derived-mode ai-kb-list-mode special-mode "ai-kb"
  "Nodes of the knowledge base."
  (setq-local revert-buffer-function #'ignore))

(defun ai-kb--button (label action)
  "Insert a button with this LABEL for ACTION."
  (insert-text-button label 'action (lambda (_) (funcall action)) 'follow-link t))

(defun ai-kb--show-nodes (name head nodes)
  "Show in buffer NAME below HEAD these NODES, each a record."
  (let ((buffer (get-buffer-create name)))
    (with-current-buffer buffer
      (let ((inhibit-read-only t))
        (ai-kb-list-mode)
        (erase-buffer)
        (insert head "\n\n")
        (dolist (node nodes)
          (let ((path (ai-kb--get node 'path)))
            (ai-kb--button (ai-kb--one-line (ai-kb--get node 'title)) (lambda () (ai-kb--visit path))))
          (insert (format " (%s)%s%s\n    %s\n" (ai-kb--get node 'id)
                          (if (equal (ai-kb--get node 'status) "current") ""
                            (format " [%s]" (ai-kb--get node 'status)))
                          (if (ai-kb--get node 'match)
                              (format "  %s" (string-join (ai-kb--get node 'match) ", "))
                            "")
                          (ai-kb--one-line (ai-kb--get node 'summary)))))
        (unless nodes (insert "None.\n"))
        (goto-char (point-min))))
    (pop-to-buffer buffer)))

;;;###autoload
(defun ai-kb-search (words)
  "Show the nodes that WORDS are about."
  (interactive (list (read-string "Search the knowledge base for: ")))
  (ai-kb--ask (list "query" "--" words)
              (lambda (record)
                (ai-kb--show-nodes "*ai-kb search*"
                                   (concat (format "Nodes about %s" words)
                                           (let ((note (ai-kb--get record 'note)))
                                             (if (string-empty-p (or note "")) ""
                                               (format "\n! %s" note))))
                                   (ai-kb--get record 'matches)))))

(defun ai-kb--id-at-point (&optional whole)
  "The ID at point, or that of the pointer `ai-kb: Title (ID)' around it.
With WHOLE, a pointer as it is: its title is the fallback for its ID."
  (save-excursion
    (let ((at (point))
          (end (line-end-position))
          found)
      (goto-char (line-beginning-position))
      (while (and (not found)
                  (re-search-forward (concat "\\(?:ai-kb: [^\n]*?(\\)?\\(" ai-kb--uuid "\\))?") end t))
        (when (<= (match-beginning 0) at (match-end 0))
          (setq found (match-string-no-properties (if (and whole (string-prefix-p "ai-kb: " (match-string 0)))
                                                   0 1)))))
      found)))

(defun ai-kb--id-of-buffer ()
  "The ID of the node in this buffer."
  (when (ai-kb--node-path-p (ai-kb--buffer-path))
    (save-excursion
      (save-restriction
        (widen)
        (goto-char (point-min))
        (let ((case-fold-search t))
          (when (re-search-forward (concat "^[ \t]*:ID:[ \t]+\\(" ai-kb--uuid "\\)")
                                   (min (point-max) 10000) t)
            (match-string-no-properties 1)))))))

(defun ai-kb--read-node (prompt &optional default)
  "Ask for a node with PROMPT.
Its ID, the beginning of it, a pointer, or its title; DEFAULT on an
empty answer."
  (let ((told (string-trim (read-string (if default (format "%s (%s): " prompt default)
                                          (format "%s: " prompt))
                                        nil nil default))))
    (when (string-empty-p told) (user-error "No node named"))
    (string-remove-prefix "ai-kb: " told)))

;;;###autoload
(defun ai-kb-show-node (node)
  "Open NODE, named by ID, pointer or title.
That is the pointer at point, or one that is asked for."
  (interactive (list (or (ai-kb--id-at-point t) (ai-kb--read-node "Node"))))
  (ai-kb--ask (list "show" "--" node)
              (lambda (record)
                (let ((note (ai-kb--get record 'note)))
                  (unless (string-empty-p (or note "")) (message "ai-kb: %s" note)))
                (ai-kb--visit (ai-kb--get record 'node 'path)))))

;;;###autoload
(defun ai-kb-backlinks (node)
  "Show the nodes that link to NODE.
That is the one at point, that of this buffer, or one that is asked for."
  (interactive (list (or (ai-kb--id-at-point) (ai-kb--id-of-buffer) (ai-kb--read-node "Links to node"))))
  (ai-kb--ask (list "backlinks" "--" node)
              (lambda (record)
                (ai-kb--show-nodes "*ai-kb backlinks*"
                                   (format "Nodes that link to %s" (ai-kb--get record 'node 'title))
                                   (ai-kb--get record 'backlinks)))))

;;;###autoload
(defun ai-kb-map (&optional project tag status)
  "Draw the nodes and their links, with graphviz if it is installed.
With a prefix argument ask which: PROJECT, TAG and STATUS; an empty
answer means all."
  (interactive
   (when current-prefix-arg
     (list (read-string "Project: ") (read-string "Tag: ")
           (completing-read "Status: " '("" "current" "contested" "superseded") nil t))))
  (ai-kb--ask (append '("map")
                      (ai-kb--option "--project" project)
                      (ai-kb--option "--tag" tag)
                      (ai-kb--option "--status" status))
              (lambda (record) (ai-kb--draw (ai-kb--get record 'dot)))))

(defun ai-kb--option (name value)
  "NAME with VALUE as one argument, or none."
  (unless (string-empty-p (or value ""))
    (list (concat name "=" value))))

(defun ai-kb--draw (dot)
  "Show the picture that DOT describes, or DOT itself where it cannot be drawn."
  (let ((program (executable-find "dot"))
        (file (ai-kb--ours "map.svg")))
    (if (not program)
        (ai-kb--show-dot dot "graphviz is not installed; this is what it would draw")
      (ai-kb--start (list program "-Tsvg" "-o" file) dot
                    (lambda (status _out err)
                      (cond
                       ((/= status 0)
                        (ai-kb--show-dot dot (format "graphviz failed: %s" (string-trim err))))
                       ((and (display-graphic-p) (image-type-available-p 'svg))
                        (find-file-other-window file))
                       (t (ai-kb--show-dot dot (format "Drawn in %s" file)))))))))

(defun ai-kb--show-dot (dot told)
  "Show DOT as text, and TOLD."
  (with-current-buffer (get-buffer-create "*ai-kb map*")
    (let ((inhibit-read-only t))
      (special-mode)
      (erase-buffer)
      (insert "// " (ai-kb--one-line told) "\n" dot)
      (goto-char (point-min)))
    (display-buffer (current-buffer)))
  (message "ai-kb: %s" told))

;;;; The dashboard

(defvar ai-kb-dashboard-mode-map
  (let ((map (make-sparse-keymap)))
    (set-keymap-parent map (make-composed-keymap ai-kb-command-map special-mode-map))
    (define-key map "g" #'ai-kb-refresh)
    map)
  "The keys of the dashboard: those of `ai-kb-command-map', and g.")

(define-derived-mode ai-kb-dashboard-mode special-mode "ai-kb"
  "How the knowledge base stands.")

;;;###autoload
(defun ai-kb-dashboard ()
  "Show how the knowledge base stands."
  (interactive)
  (ai-kb--need-store)
  (ai-kb-global-mode 1)
  (pop-to-buffer (get-buffer-create ai-kb-dashboard-buffer))
  (ai-kb--draw-dashboard)
  (ai-kb-refresh))

(defun ai-kb--draw-dashboard ()
  "Draw the dashboard with what is known."
  (with-current-buffer (get-buffer-create ai-kb-dashboard-buffer)
    (unless (derived-mode-p 'ai-kb-dashboard-mode) (ai-kb-dashboard-mode))
    (let ((inhibit-read-only t)
          (at (point)))
      (erase-buffer)
      (insert (propertize "Knowledge base" 'face 'bold) "  "
              (abbreviate-file-name (ai-kb--root)) "\n\n")
      (dolist (row (ai-kb--dashboard-rows))
        (insert (format "%-12s %s\n" (car row) (cdr row))))
      (insert "\n")
      (dolist (each '(("Refresh" . ai-kb-refresh) ("Find" . ai-kb-find-node) ("Search" . ai-kb-search)
                      ("Map" . ai-kb-map) ("Lint" . ai-kb-lint) ("Commit" . ai-kb-commit)
                      ("Sync" . ai-kb-db-sync) ("Push" . ai-kb-push) ("Doctor" . ai-kb-doctor)))
        (let ((command (cdr each)))
          (ai-kb--button (format "[%s]" (car each)) (lambda () (call-interactively command))))
        (insert " "))
      (insert "\n")
      (goto-char (min at (point-max))))))

(defun ai-kb--dashboard-rows ()
  "Names and values on the dashboard."
  (let* ((status ai-kb--status)
         (told (lambda (key) (let ((value (ai-kb--get status key)))
                               (if (member value '(nil "")) nil value))))
         (remote (funcall told 'remote)))
    (delq nil
          (list
           (cons "profile" (if (ai-kb-switched-p) "org-roam is the knowledge base's"
                             "org-roam is your own"))
           (cons "state" (concat (ai-kb--standing)
                                 (if (string-empty-p (or ai-kb--detail "")) ""
                                   (format ": %s" (ai-kb--one-line ai-kb--detail)))))
           (cons "nodes" (if (ai-kb--get status 'nodes)
                             (format "%d%s" (ai-kb--get status 'nodes)
                                     (let ((contested (or (ai-kb--get status 'contested) 0)))
                                       (if (> contested 0) (format ", %d contested" contested) "")))
                           "…"))
           (cons "unpushed" (if remote
                                (format "%d (behind %d)" (or (ai-kb--get status 'ahead) 0)
                                        (or (ai-kb--get status 'behind) 0))
                              "there is no remote"))
           (cons "last push" (let ((problem (funcall told 'push_problem)))
                               (cond (problem (format "failed: %s" problem))
                                     ((funcall told 'diverged) "diverged from its remote; see the doctor")
                                     (t "no failure"))))
           (when (funcall told 'uncommitted)
             (cons "uncommitted" (string-join (funcall told 'uncommitted) ", ")))
           (when (> (or (ai-kb--get status 'secrets) 0) 0)
             (cons "secrets" (format "%d; see lint" (ai-kb--get status 'secrets))))
           (cons "curation" (if (funcall told 'curation_due) "due: `ai-kb curate --dry-run'" "not due"))
           (cons "last index" (or (funcall told 'indexed_at) "never by this machine"))
           (cons "last sync" (ai-kb--last-sync))))))

(defun ai-kb--last-sync ()
  "When org-roam's index was made, and what is going on with it."
  (let ((stamp (concat (ai-kb--database) ".synced")))
    (concat (if (file-exists-p stamp)
                (format-time-string "%FT%TZ" (file-attribute-modification-time (file-attributes stamp)) t)
              "never")
            (pcase ai-kb--sync-state
              ('running ", syncing…")
              ((pred stringp) (format "; problem: %s" (ai-kb--one-line ai-kb--sync-state)))
              (_ "")))))

;;;###autoload
(defun ai-kb-push ()
  "Push what the remote does not have."
  (interactive)
  (ai-kb--ask '("push")
              (lambda (record)
                (message "ai-kb: push: %s%s" (ai-kb--get record 'outcome)
                         (let ((problem (ai-kb--get record 'problem)))
                           (if (string-empty-p (or problem "")) "" (format ": %s" problem))))
                (ai-kb-refresh))))

;;;###autoload
(defun ai-kb-doctor ()
  "Show everything that can be wrong with the knowledge base, and what to do."
  (interactive)
  (ai-kb--ask '("doctor")
              (lambda (record)
                (with-current-buffer (get-buffer-create "*ai-kb doctor*")
                  (let ((inhibit-read-only t))
                    (special-mode)
                    (erase-buffer)
                    (dolist (check (ai-kb--get record 'checks))
                      (insert (format "%s %-12s %s%s\n" (cond ((not (ai-kb--get check 'well)) "!!")
                                            ((ai-kb--get check 'missing) "--")
                                            (t "ok"))
                                      (ai-kb--get check 'name)
                                      (ai-kb--one-line (ai-kb--get check 'told))
                                      (if (ai-kb--get check 'well) ""
                                        (format ". %s" (ai-kb--one-line (ai-kb--get check 'remedy)))))))
                    (goto-char (point-min)))
                  (pop-to-buffer (current-buffer))))))

;; A file with settings may be read after this one: then the beginning is the time to look.
(if after-init-time
    (ai-kb-reassert)
  (add-hook 'emacs-startup-hook #'ai-kb-reassert 90))

(provide 'ai-kb)

;;; ai-kb.el ends here
