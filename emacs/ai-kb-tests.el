;;; ai-kb-tests.el --- Tests of ai-kb.el  -*- lexical-binding: t; -*-

;;; Commentary:

;; Run by tests/test_emacs.py, which makes a knowledge base with the real program and says with
;; AI_KB_TEMPLATE where it is and with AI_KB_TEST_PROGRAM how the program is called.  Every test
;; has a copy of that knowledge base, and a personal org-roam beside it.

;;; Code:

(require 'ert)
(require 'cl-lib)
(require 'org)
(require 'org-id)
(require 'org-capture)
(require 'org-roam)
(require 'org-roam-dailies)
(require 'ai-kb)

(defconst ai-kb-tests-alpha "aaaaaaaa-0000-4000-8000-000000000001")
(defconst ai-kb-tests-beta "bbbbbbbb-0000-4000-8000-000000000002")

(defvar ai-kb-tests-home nil "Where the personal things of a test are.")
(defvar ai-kb-tests-ran nil "What a personal hook or a hostile node has done.")

(defun ai-kb-tests-home (path)
  "PATH among the personal things."
  (expand-file-name path ai-kb-tests-home))

(defun ai-kb-tests-write (file text)
  "Write TEXT into FILE."
  (make-directory (file-name-directory file) t)
  (let ((coding-system-for-write 'utf-8-unix))
    (write-region text nil file nil 'silent))
  file)

(defun ai-kb-tests-read (file)
  "What stands in FILE."
  (with-temp-buffer (insert-file-contents file) (buffer-string)))

(defmacro ai-kb-tests-with (&rest body)
  "Run BODY with a fresh copy of the knowledge base, and a personal org-roam."
  (declare (indent 0) (debug t))
  `(let* ((home (file-truename (make-temp-file "ai-kb-test" t)))
          (ai-kb-tests-home home)
          (ai-kb-tests-ran nil)
          (user-emacs-directory (file-name-as-directory (expand-file-name "emacs.d" home)))
          (ai-kb-directory (expand-file-name "kb" home))
          (ai-kb-program (split-string (getenv "AI_KB_TEST_PROGRAM") "\n"))
          (make-backup-files nil)
          (create-lockfiles nil)
          (org-inhibit-startup nil)
          (inhibit-message t))
     (copy-directory (getenv "AI_KB_TEMPLATE") ai-kb-directory nil nil t)
     (ai-kb-tests-write (ai-kb-tests-home "roam/mine.org")
                        ":PROPERTIES:\n:ID: mine-1\n:END:\n#+title: My recipes\n* TODO Bake\n")
     (setq-default org-roam-directory (ai-kb-tests-home "roam/")
                   org-roam-db-location (ai-kb-tests-home "personal.db")
                   org-agenda-files (list (ai-kb-tests-home "roam/mine.org")))
     (setq ai-kb--state 'unknown ai-kb--status nil ai-kb--sync-state nil ai-kb--offline nil)
     (ai-kb-global-mode 1)
     (unwind-protect (progn ,@body)
       (ai-kb-tests-settle)
       (when (ai-kb-switched-p) (ai-kb-leave))
       (org-roam-db--close-all)
       (ai-kb-tests-close)
       (ai-kb-global-mode -1)
       (delete-directory home t))))

(defun ai-kb-tests-close ()
  "Kill every buffer with a file, and those of the knowledge base."
  (dolist (buffer (buffer-list))
    (when (or (buffer-file-name buffer) (string-match-p "\\`\\*ai-kb" (buffer-name buffer)))
      (with-current-buffer buffer (set-buffer-modified-p nil))
      (kill-buffer buffer))))

(defun ai-kb-tests-until (condition)
  "Wait until CONDITION, a function, holds; fail when it does not."
  (let ((until (+ (float-time) 120)))
    (while (not (funcall condition))
      (when (> (float-time) until) (error "Waited in vain for %S" condition))
      (accept-process-output nil 0.02))))

(defun ai-kb-tests-settle ()
  "Wait until nothing is running."
  (ai-kb-tests-until (lambda () (and (= ai-kb--calls 0) (not ai-kb--committing)))))

(defun ai-kb-tests-git (&rest arguments)
  "What git says to ARGUMENTS in the knowledge base."
  (with-temp-buffer
    (let ((default-directory (file-name-as-directory ai-kb-directory)))
      (apply #'call-process "git" nil t nil "-c" "safe.directory=*" arguments)
      (string-trim (buffer-string)))))

(defun ai-kb-tests-commits ()
  "How many commits the knowledge base has."
  (string-to-number (ai-kb-tests-git "rev-list" "--count" "HEAD")))

(defun ai-kb-tests-file (name)
  "The file NAME of the knowledge base."
  (expand-file-name name ai-kb-directory))

(defun ai-kb-tests-add (file text)
  "Add TEXT to FILE of the knowledge base and save it; return its buffer."
  (let ((buffer (find-file-noselect (ai-kb-tests-file file))))
    (with-current-buffer buffer
      (goto-char (point-max))
      (insert text)
      (save-buffer))
    buffer))

(defun ai-kb-tests-ids (database)
  "The ids that stand in DATABASE of org-roam."
  (let ((org-roam-db-location database)
        (org-roam-directory (make-temp-name "/nowhere/")))
    (prog1 (sort (mapcar #'car (org-roam-db-query [:select id :from nodes])) #'string<)
      (org-roam-db--close))))

(defun ai-kb-tests-snapshot ()
  "Every personal file with what it holds."
  (mapcar (lambda (file) (cons file (ai-kb-tests-read file)))
          (directory-files-recursively (ai-kb-tests-home "roam") ".")))

(defun ai-kb-tests-hook (&rest _)
  "A personal hook: it notes that it ran, in the journal and in the agenda."
  (push 'hook ai-kb-tests-ran)
  (ai-kb-tests-write (ai-kb-tests-home "roam/journal.org") "something was done\n")
  (add-to-list 'org-agenda-files (or buffer-file-name "captured")))

;;;; The profile

(ert-deftest ai-kb-switching-and-leaving-restores-everything-exactly ()
  (ai-kb-tests-with
    (let* ((templates (list (list "d" "mine" 'plain "%?" :target '(file "x.org"))))
           (org-roam-capture-templates templates)
           (org-after-todo-state-change-hook (list #'ai-kb-tests-hook))
           (ai-kb-profile-extra '((ai-kb-tests-never-bound . 1)))
           (ai-kb-program "true")
           (buffer (generate-new-buffer "local"))
           (before (mapcar (lambda (each) (ai-kb--save (car each)))
                           (append (ai-kb--profile) (ai-kb--silent-hooks)))))
      (with-current-buffer buffer (setq-local org-roam-directory "/a/project/of/its/own/"))
      (with-current-buffer buffer (ai-kb-switch))
      (should (equal (default-value 'org-roam-directory) (ai-kb--root)))
      (should (equal org-roam-db-location (ai-kb--ours "org-roam.db")))
      (should (= (default-value 'ai-kb-tests-never-bound) 1))
      (should-not (equal org-roam-capture-templates templates))
      (should (equal (buffer-local-value 'org-roam-directory buffer) "/a/project/of/its/own/"))
      (with-current-buffer buffer (ai-kb-leave))
      (should (equal (buffer-local-value 'org-roam-directory buffer) "/a/project/of/its/own/"))
      (kill-buffer buffer)
      (dolist (saved before)
        (pcase saved
          (`(,variable t ,value) (should (eq (default-value variable) value)))
          (`(,variable nil) (should-not (boundp variable)))))
      (should (eq org-roam-capture-templates templates))
      (should-not (file-exists-p (ai-kb--marker)))
      (should-not (advice-member-p #'ai-kb--refuse 'org-roam-dailies--capture)))))

(ert-deftest ai-kb-a-second-switch-or-leave-changes-nothing ()
  (ai-kb-tests-with
    (setq ai-kb-program "true")         ; no index is needed here
    (ai-kb-leave)
    (ai-kb-switch)
    (ai-kb-switch)
    (ai-kb-leave)
    (should (equal org-roam-directory (ai-kb-tests-home "roam/")))))

(ert-deftest ai-kb-a-task-done-in-a-node-reaches-no-journal-switched-or-not ()
  (ai-kb-tests-with
    (let ((org-after-todo-state-change-hook (list #'ai-kb-tests-hook))
          (ai-kb-program "true"))
      (dolist (switched '(t nil))
        (if switched (ai-kb-switch) (ai-kb-leave))
        (with-current-buffer (find-file-noselect (ai-kb-tests-file "alpha.org"))
          (goto-char (point-max))
          (insert "* TODO Try it\n")
          (forward-line -1)
          (org-todo 'done)
          (should (looking-at "\\* DONE"))
          (set-buffer-modified-p nil))
        (ai-kb-tests-close)
        (should-not ai-kb-tests-ran)
        (should-not (file-exists-p (ai-kb-tests-home "roam/journal.org"))))
      ;; Elsewhere it runs as ever.
      (with-current-buffer (find-file-noselect (ai-kb-tests-home "roam/mine.org"))
        (search-forward "Bake")
        (org-todo 'done)
        (set-buffer-modified-p nil))
      (should (equal ai-kb-tests-ran '(hook))))))

(ert-deftest ai-kb-a-capture-makes-a-committed-node-and-touches-nothing-personal ()
  (ai-kb-tests-with
    (let* ((personal (list #'ai-kb-tests-hook))
           (org-roam-capture-new-node-hook
            (append personal (default-value 'org-roam-capture-new-node-hook)))
           (org-capture-before-finalize-hook personal)
           (org-capture-after-finalize-hook personal)
           (org-roam-find-file-hook (append personal (default-value 'org-roam-find-file-hook)))
           (agenda org-agenda-files)
           (before (ai-kb-tests-snapshot))
           (commits (ai-kb-tests-commits)))
      (ai-kb-switch)
      (ai-kb-tests-settle)
      (org-roam-capture- :keys "c"
                         :node (org-roam-node-create :title "Release a library")
                         :info '(:summary "How a library is released.")
                         :props '(:immediate-finish t))
      (ai-kb-tests-settle)
      (should (= (ai-kb-tests-commits) (1+ commits)))
      (should (equal (ai-kb--standing) "clean"))
      (let* ((file (car (directory-files ai-kb-directory t "release_?-?a")))
             (text (ai-kb-tests-read file)))
        (should (string-match-p (concat "^:ID: +" ai-kb--uuid "$") text))
        (should (string-match-p "^#\\+filetags: :procedure:$" text))
        (should (string-match-p "^:SUMMARY: How a library is released.$" text))
        (should (member (ai-kb-tests-id file) (ai-kb-tests-ids (ai-kb--database)))))
      (should-not ai-kb-tests-ran)
      (ai-kb-leave)
      (should (eq org-agenda-files agenda))
      (should (equal (ai-kb-tests-snapshot) before))
      (should-not (file-exists-p (ai-kb-tests-home "personal.db"))))))

(defun ai-kb-tests-id (file)
  "The ID of the node in FILE."
  (with-current-buffer (find-file-noselect file) (ai-kb--id-of-buffer)))

(ert-deftest ai-kb-there-are-no-dailies-while-switched ()
  (ai-kb-tests-with
    (let ((org-roam-dailies-directory (ai-kb-tests-home "roam/daily/"))
          (ai-kb-program "true")
          (before (ai-kb-tests-snapshot)))
      (ai-kb-switch)
      (dolist (command '(org-roam-dailies-capture-today org-roam-dailies-goto-today
                         org-roam-dailies-find-directory org-roam-dailies-goto-yesterday))
        (should-error (if (string-suffix-p "yesterday" (symbol-name command))
                          (funcall command 1)
                        (funcall command))
                      :type 'user-error))
      (should (equal (ai-kb-tests-snapshot) before))
      (should-not (file-exists-p (ai-kb-tests-file ".no-dailies")))
      (ai-kb-leave)
      (should (equal org-roam-dailies-directory (ai-kb-tests-home "roam/daily/"))))))

(defun ai-kb-tests-find-recipe ()
  "A personal way to personal notes."
  (push 'recipe ai-kb-tests-ran))

(ert-deftest ai-kb-personal-commands-are-refused-while-switched ()
  (ai-kb-tests-with
    (let ((ai-kb-personal-commands (cons 'ai-kb-tests-find-recipe ai-kb-personal-commands))
          (ai-kb-program "true"))
      (ai-kb-switch)
      (should-error (ai-kb-tests-find-recipe) :type 'user-error)
      ;; Nor does the agenda take a node.
      (with-current-buffer (find-file-noselect (ai-kb-tests-file "alpha.org"))
        (should-error (org-agenda-file-to-front) :type 'user-error))
      (ai-kb-leave)
      (ai-kb-tests-find-recipe)
      (should (equal ai-kb-tests-ran '(recipe))))))

(ert-deftest ai-kb-the-two-indexes-never-mix ()
  (ai-kb-tests-with
    (let ((personal (ai-kb-tests-home "personal.db"))
          (before (ai-kb-tests-snapshot)))
      (org-roam-db-autosync-mode 1)
      (unwind-protect
          (let ((mine (find-file-noselect (ai-kb-tests-home "roam/mine.org"))) node)
            (should (equal (ai-kb-tests-ids personal) '("mine-1")))
            (ai-kb-switch)
            (ai-kb-tests-settle)
            (should (eq ai-kb--sync-state 'synced))
            (should (member ai-kb-tests-alpha (ai-kb-tests-ids (ai-kb--database))))
            ;; A node is saved, a personal note too: neither goes to the other's index.
            (setq node (ai-kb-tests-add "alpha.org" "More.\n"))
            (with-current-buffer mine
              (goto-char (point-max))
              (insert "* Bread\n:PROPERTIES:\n:ID: mine-2\n:END:\n")
              (save-buffer))
            (ai-kb-tests-settle)
            (should-not (member "mine-1" (ai-kb-tests-ids (ai-kb--database))))
            (should-not (member "mine-2" (ai-kb-tests-ids (ai-kb--database))))
            (should (equal (ai-kb-tests-ids personal) '("mine-1")))
            ;; Afterwards the personal index has caught up, and a node still stays out of it.
            (ai-kb-leave)
            (should (equal (ai-kb-tests-ids personal) '("mine-1" "mine-2")))
            (with-current-buffer node
              (goto-char (point-max))
              (insert "Still more.\n")
              (save-buffer))
            (ai-kb-tests-settle)
            (should (equal (ai-kb-tests-ids personal) '("mine-1" "mine-2")))
            (should (equal (length (ai-kb-tests-snapshot)) (length before))))
        (org-roam-db-autosync-mode -1)))))

(ert-deftest ai-kb-a-link-to-nothing-reads-no-personal-file ()
  (ai-kb-tests-with
    (ai-kb-switch)
    (ai-kb-tests-settle)
    (let* ((read nil)
           (watch (lambda (file &rest _)
                    (when (string-prefix-p (ai-kb-tests-home "roam") (expand-file-name file))
                      (push file read)))))
      (advice-add 'insert-file-contents :before watch)
      (unwind-protect
          (with-current-buffer (find-file-noselect (ai-kb-tests-file "alpha.org"))
            (ignore-errors (org-link-open-from-string "[[id:cccccccc-0000-4000-8000-00000000000c]]"))
            (org-link-open-from-string (format "[[id:%s]]" ai-kb-tests-beta))
            (should (equal (file-name-nondirectory buffer-file-name) "beta.org"))
            (org-id-add-location "x" (ai-kb-tests-file "alpha.org"))
            (should-not read))
        (advice-remove 'insert-file-contents watch)))))

(ert-deftest ai-kb-a-link-out-of-the-store-is-not-indexed ()
  (ai-kb-tests-with
    (make-symbolic-link (ai-kb-tests-home "roam") (ai-kb-tests-file "notes"))
    (ai-kb-switch)
    (ai-kb-tests-settle)
    (should-not (member "mine-1" (ai-kb-tests-ids (ai-kb--database))))
    (should-not (seq-filter (lambda (file) (string-match-p "mine" file)) (org-roam-list-files)))
    (should (= 3 (length (org-roam-list-files)))))) ; the two of the tests, and the one that init wrote

;;;; A save

(defmacro ai-kb-tests-slowly (&rest body)
  "Run BODY with a program that first sleeps."
  (declare (indent 0) (debug t))
  `(let ((ai-kb-program (append (list "sh" "-c" "sleep 0.7; exec \"$@\"" "sh") ai-kb-program)))
     ,@body))

(ert-deftest ai-kb-a-save-waits-for-nothing-and-another-one-runs-once-more ()
  (ai-kb-tests-with
    (ai-kb-tests-slowly
      (let* ((commits (ai-kb-tests-commits))
             (buffer (ai-kb-tests-add "alpha.org" "One.\n")))
        (should (equal (ai-kb--standing) "running")) ; whoever waits for it sees its end
        (with-current-buffer buffer
          (should-not buffer-read-only)
          (should (equal (string-join (ai-kb--lighter)) " KB:running"))
          (dotimes (_ 3)
            (insert "Two.\n")
            (save-buffer)))
        (should ai-kb--again)
        (ai-kb-tests-settle)
        (should (equal (ai-kb-tests-git "status" "--porcelain") ""))
        (should (<= (1+ commits) (ai-kb-tests-commits) (+ 2 commits)))
        (should (equal (ai-kb--standing) "clean"))))))

(ert-deftest ai-kb-a-save-sets-the-day-and-the-file-is-that-of-the-buffer ()
  (ai-kb-tests-with
    (let ((today (format-time-string "%Y-%m-%d"))
          (buffer (ai-kb-tests-add "alpha.org" "One.\n")))
      (ai-kb-tests-settle)
      (with-current-buffer buffer
        (should (string-match-p (concat "^:UPDATED:[ \t]+" today "$") (buffer-string)))
        (should (verify-visited-file-modtime buffer))
        (should-not (buffer-modified-p)))
      (should (equal (ai-kb-tests-git "status" "--porcelain") "")))))

(ert-deftest ai-kb-a-bad-save-is-shown-and-a-good-one-commits ()
  (ai-kb-tests-with
    (let* ((commits (ai-kb-tests-commits))
           (buffer (find-file-noselect (ai-kb-tests-file "alpha.org")))
           (window (selected-window)))
      (switch-to-buffer buffer)
      (should ai-kb-mode)
      (goto-char (point-min))
      (re-search-forward "^:STATUS: +\\(current\\)")
      (replace-match "sometimes" t t nil 1)
      (save-buffer)
      (ai-kb-tests-settle)
      (should (= (ai-kb-tests-commits) commits))
      (should (string-match-p "sometimes" (ai-kb-tests-read (ai-kb-tests-file "alpha.org"))))
      (should (equal (ai-kb--standing) "failing 1"))
      (should (eq (selected-window) window))
      (should (eq (window-buffer window) buffer))
      (should (get-buffer-window ai-kb-lint-buffer))
      (should-not buffer-read-only)
      (let ((line (line-number-at-pos)))
        (goto-char (point-max))
        (next-error 1 t)
        (with-current-buffer buffer
          (should (eq (window-buffer (selected-window)) buffer))
          (should (= (line-number-at-pos) line))))
      (with-current-buffer buffer
        (goto-char (point-min))
        (re-search-forward "sometimes")
        (replace-match "current")
        (goto-char (point-max))
        (insert "Mended.\n")
        (save-buffer))
      (ai-kb-tests-settle)
      (should (= (ai-kb-tests-commits) (1+ commits)))
      (should (equal (ai-kb--standing) "clean"))
      (should-not (get-buffer-window ai-kb-lint-buffer)))))

(ert-deftest ai-kb-generated-and-captured-files-have-no-mode ()
  (ai-kb-tests-with
    (dolist (file '("index.org" "AGENT_CONTRACT.org" "raw/README.org"))
      (with-current-buffer (find-file-noselect (ai-kb-tests-file file))
        (should (derived-mode-p 'org-mode))
        (should-not ai-kb-mode)
        (should-not (memq #'ai-kb--after-save after-save-hook))))
    (with-current-buffer (find-file-noselect (ai-kb-tests-file "deeper/new.org"))
      (should ai-kb-mode))
    (with-current-buffer (find-file-noselect (ai-kb-tests-home "roam/mine.org"))
      (should-not ai-kb-mode))))

(ert-deftest ai-kb-the-index-is-read-again-and-starts-nothing ()
  (ai-kb-tests-with
    (let ((index (find-file-noselect (ai-kb-tests-file "index.org")))
          (commits (ai-kb-tests-commits)))
      (with-current-buffer (find-file-noselect (ai-kb-tests-file "alpha.org"))
        (re-search-forward "^#\\+title: .*$")
        (replace-match "#+title: Alpha renamed")
        (save-buffer))
      (ai-kb-tests-settle)
      (should (= (ai-kb-tests-commits) (1+ commits)))
      (with-current-buffer index
        (should (string-match-p "Alpha renamed" (buffer-string)))
        (should-not (buffer-modified-p)))
      (let ((ai-kb--in-pipeline t))
        (ai-kb-tests-add "alpha.org" "By ourselves.\n")
        (should-not ai-kb--committing)))))

(ert-deftest ai-kb-a-program-that-is-missing-is-told-and-the-save-stands ()
  (ai-kb-tests-with
    (let ((ai-kb-program "no-such-program-anywhere"))
      (ai-kb-tests-add "alpha.org" "Saved all the same.\n")
      (ai-kb-tests-settle)
      (should (eq ai-kb--state 'error))
      (should (string-match-p "no-such-program-anywhere cannot be started" ai-kb--detail))
      (should (string-match-p "all the same" (ai-kb-tests-read (ai-kb-tests-file "alpha.org")))))))

(ert-deftest ai-kb-a-remote-that-is-away-is-shown ()
  (ai-kb-tests-with
    (ai-kb-tests-git "remote" "add" "origin" (ai-kb-tests-home "away.git"))
    (ai-kb-tests-add "alpha.org" "Offline.\n")
    (ai-kb-tests-settle)
    (should (eq ai-kb--state 'clean))
    (should (string-match-p "\\`offline, ahead [1-9]" (ai-kb--standing)))))

;;;; Looking around

(defun ai-kb-tests-shown ()
  "The path of the node in the selected window."
  (with-current-buffer (window-buffer) (ai-kb--buffer-path)))

(ert-deftest ai-kb-the-dashboard-tells-how-things-stand ()
  (ai-kb-tests-with
    (ai-kb-dashboard)
    (ai-kb-tests-settle)
    (with-current-buffer ai-kb-dashboard-buffer
      (dolist (told '("nodes +3" "there is no remote" "last push +no failure" "curation +not due"
                      "last index +20" "last sync +never" "\\[Refresh\\]" "\\[Doctor\\]"
                      "state +clean"))
        (should (string-match-p told (buffer-string))))
      (goto-char (point-min))
      (search-forward "[Lint]")
      (backward-char 2)
      (push-button)
      (ai-kb-tests-settle))))

(ert-deftest ai-kb-search-show-and-backlinks-lead-to-nodes ()
  (ai-kb-tests-with
    (ai-kb-search "alpha --json")
    (ai-kb-tests-settle)
    (with-current-buffer "*ai-kb search*"
      (should (string-match-p ai-kb-tests-alpha (buffer-string)))
      (goto-char (point-min))
      (search-forward "The alpha")
      (push-button (match-beginning 0)))
    (should (equal (ai-kb-tests-shown) "alpha.org"))
    (with-temp-buffer
      (insert "See ai-kb: The beta node (" ai-kb-tests-beta ") for more.\n")
      (goto-char 8)
      (should (equal (ai-kb--id-at-point) ai-kb-tests-beta))
      (goto-char (point-max))
      (should-not (ai-kb--id-at-point))
      (goto-char 8)
      (call-interactively #'ai-kb-show-node))
    (ai-kb-tests-settle)
    (should (equal (ai-kb-tests-shown) "beta.org"))
    (with-temp-buffer
      (insert "See ai-kb: The alpha node (00000000-0000-4000-8000-000000000000) for more.\n")
      (goto-char 8)
      (call-interactively #'ai-kb-show-node))
    (ai-kb-tests-settle)
    (should (equal (ai-kb-tests-shown) "alpha.org"))
    (ai-kb-show-node ai-kb-tests-beta)
    (ai-kb-tests-settle)
    (with-current-buffer (window-buffer)
      (goto-char (point-max))
      (call-interactively #'ai-kb-backlinks))
    (ai-kb-tests-settle)
    (with-current-buffer "*ai-kb backlinks*"
      (should (string-match-p "link to The beta node" (buffer-string)))
      (should (string-match-p ai-kb-tests-alpha (buffer-string)))
      (should-not (string-match-p "index" (buffer-string))))))

(ert-deftest ai-kb-nothing-outside-is-visited ()
  (ai-kb-tests-with
    (should-error (ai-kb--visit "../roam/mine.org") :type 'user-error)
    (should-error (ai-kb--visit "/etc/passwd") :type 'user-error)))

(ert-deftest ai-kb-find-node-switches-and-waits-for-the-index ()
  (ai-kb-tests-with
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_ collection &rest _)
                 (seq-find (lambda (each) (string-match-p "The beta" each))
                           (all-completions "" collection)))))
      (ai-kb-find-node))
    (should (equal (ai-kb-tests-shown) "beta.org"))
    (should (ai-kb-switched-p))
    (should (eq ai-kb--sync-state 'synced))
    (should (equal (org-roam-node-title (org-roam-node-from-id ai-kb-tests-beta)) "The beta node"))))

(ert-deftest ai-kb-the-map-is-drawn-or-told ()
  (ai-kb-tests-with
    (ai-kb-map)
    (ai-kb-tests-settle)
    (with-current-buffer "*ai-kb map*"
      (should (string-match-p (format "\"%s\" -> \"%s\"" ai-kb-tests-alpha ai-kb-tests-beta)
                              (buffer-string))))
    (when (executable-find "dot")
      (should (string-match-p "The alpha node" (ai-kb-tests-read (ai-kb--ours "map.svg")))))
    (let ((exec-path nil))
      (ai-kb-map "" "procedure" ""))
    (ai-kb-tests-settle)
    (with-current-buffer "*ai-kb map*"
      (should (string-match-p ai-kb-tests-beta (buffer-string)))
      (should-not (string-match-p ai-kb-tests-alpha (buffer-string))))))

(ert-deftest ai-kb-a-sync-happens-only-when-nodes-changed-or-it-is-forced ()
  (ai-kb-tests-with
    (let ((ai-kb-db-location (ai-kb-tests-home "cache/other.db")))
      (cl-flet ((sync (&optional force)
                  (ai-kb-db-sync force)
                  (should (eq ai-kb--sync-state 'running))
                  (ai-kb-tests-settle)
                  ai-kb--sync-state))
        (make-directory (ai-kb-tests-home "cache"))
        (should (eq (sync) 'synced))
        (should (eq (sync) 'fresh))
        (delete-file (ai-kb-tests-file "beta.org"))
        (should (eq (sync) 'synced))
        (should-not (member ai-kb-tests-beta (ai-kb-tests-ids ai-kb-db-location)))
        (should (eq (sync) 'fresh))
        (should (eq (sync t) 'synced))))))

;;;; What a node cannot do

(defun ai-kb-tests-evil (&rest _)
  "What a hostile node would like to be called."
  (push 'evil ai-kb-tests-ran)
  "https://example.org")

(define-derived-mode ai-kb-tests-evil-mode fundamental-mode "Evil"
  (push 'mode ai-kb-tests-ran))

(ert-deftest ai-kb-opening-a-node-evaluates-nothing ()
  (ai-kb-tests-with
    (ai-kb-tests-write (ai-kb-tests-file ".dir-locals.el")
                       "((nil . ((eval . (ai-kb-tests-evil)) (fill-column . 7))))")
    (ai-kb-tests-write (ai-kb-tests-home "roam/setup.org") "#+filetags: :from-setup:\n")
    (ai-kb-tests-write
     (ai-kb-tests-file "evil.org")
     (concat "# -*- mode: ai-kb-tests-evil; eval: (ai-kb-tests-evil) -*-\n"
             (ai-kb-tests-read (ai-kb-tests-file "alpha.org"))
             "#+link: bad %(ai-kb-tests-evil)\n[[bad:x]] [[bad:y][z]]\n"
             "#+setupfile: " (ai-kb-tests-home "roam/setup.org") "\n"
             "#+startup: latexpreview inlineimages\n"
             "# Local" " Variables:\n# eval: (ai-kb-tests-evil)\n# fill-column: 7\n# End:\n"))
    (let ((enable-local-variables :all)
          (enable-local-eval t)
          (org-link-elisp-confirm-function nil))
      (with-current-buffer (find-file-noselect (ai-kb-tests-file "evil.org"))
        (should (derived-mode-p 'org-mode))
        (should ai-kb-mode)
        (font-lock-ensure)
        (normal-mode)
        (org-mode)
        (hack-local-variables)
        (goto-char (point-min))
        (while (re-search-forward "\\[\\[bad:" nil t) (org-element-context))
        (should-not (= fill-column 7))
        (should-not (member "from-setup" org-file-tags))
        (should org-link-elisp-confirm-function)
        (should-not org-startup-with-latex-preview))
      (should-not ai-kb-tests-ran)
      ;; Elsewhere Emacs is as it was.
      (ai-kb-tests-write (ai-kb-tests-home "roam/own.org")
                         (concat "# Local" " Variables:\n# eval: (ai-kb-tests-evil)\n# End:\n"))
      (find-file-noselect (ai-kb-tests-home "roam/own.org"))
      (should (memq 'evil ai-kb-tests-ran)))))

(provide 'ai-kb-tests)

;;; ai-kb-tests.el ends here
