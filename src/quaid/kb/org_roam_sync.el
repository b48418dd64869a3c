;;; org_roam_sync.el --- Update the org-roam database of a knowledge base  -*- lexical-binding: t; -*-

;; Run by `ai-kb sync` in batch mode, with AI_KB_ROOT, AI_KB_DATABASE and AI_KB_FORCE (empty: only changed files).

(progn
  (setq enable-local-variables nil enable-local-eval nil enable-dir-local-variables nil)
  (setq large-file-warning-threshold nil create-lockfiles nil)
  (prefer-coding-system 'utf-8)
  (require 'package)
  (package-initialize)
  (require 'org-roam)
  (advice-add 'org-link-expand-abbrev :override #'identity)
  (advice-add 'org-file-contents :override (lambda (&rest _) ""))
  (let* ((root (file-name-as-directory (file-truename (getenv "AI_KB_ROOT"))))
         (top (concat "\\`\\(?:" (regexp-quote root) "\\)?")))
    (advice-add 'org-roam-list-files :filter-return
                (lambda (files)
                  (seq-filter (lambda (file) (string-prefix-p root (file-truename file))) files)))
    (setq org-id-track-globally nil
          org-roam-directory root
          org-roam-db-location (getenv "AI_KB_DATABASE")
          org-roam-list-files-commands nil
          org-roam-file-exclude-regexp
          (list (concat top "raw/") (concat top "index[^/]*\\.org\\'")
                (concat top "AGENT_CONTRACT\\.org\\'") (concat top "\\(?:[^/]+/\\)*\\.")
                (concat top "\\(?:[^/]+/\\)*#[^/]*\\'")))
    (org-roam-db-sync (not (string-empty-p (getenv "AI_KB_FORCE"))))
    (org-roam-db--close-all)))
