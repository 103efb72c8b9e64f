# mmdebstrap has /dev, /proc and /sys mounted here, so they go in as empty folders. Times of files are kept: Python
# compares them with its compiled modules.
mkfs.erofs --quiet --preserve-mtime -x-1 --exclude-path=.bob --exclude-regex='^(dev|proc|sys|run|tmp)/.+' \
    "$work/root.erofs" "$root"
