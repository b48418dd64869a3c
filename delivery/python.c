/* The Python inside the one file: it finds its library beside itself, wherever that was unpacked, and never looks at
   another Python of the machine. Processes that Quaid starts (`sys.executable -m quaid …`) come through here too. */

#include <Python.h>
#include <limits.h>
#include <unistd.h>

static void must(PyStatus status) {
    if (PyStatus_Exception(status)) Py_ExitStatusException(status);
}

int main(int count, char **words) {
    static const char *const folders[] = {"/lib/python", "/lib/python/lib-dynload", "/lib/packages"};
    char self[PATH_MAX], path[PATH_MAX + 64];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    if (size < 0) return 5;
    self[size] = 0;

    PyPreConfig before;
    PyPreConfig_InitPythonConfig(&before);
    before.use_environment = 0;
    before.utf8_mode = 1;
    must(Py_PreInitializeFromBytesArgs(&before, count, words));

    PyConfig config;
    PyConfig_InitPythonConfig(&config);
    config.use_environment = 0;
    config.site_import = 0;
    config.user_site_directory = 0;
    config.write_bytecode = 0;
    config.pathconfig_warnings = 0;
    must(PyConfig_SetBytesArgv(&config, count, words));
    must(PyConfig_SetBytesString(&config, &config.executable, self));
    char *slash = strrchr(self, '/');
    *slash = 0;
    slash = strrchr(self, '/');
    *slash = 0;
    must(PyConfig_SetBytesString(&config, &config.home, self));
    config.module_search_paths_set = 1;
    for (size_t each = 0; each < sizeof folders / sizeof *folders; each++) {
        snprintf(path, sizeof path, "%s%s", self, folders[each]);
        wchar_t *wide = Py_DecodeLocale(path, NULL);
        if (!wide) return 5;
        must(PyWideStringList_Append(&config.module_search_paths, wide));
        PyMem_RawFree(wide);
    }
    must(Py_InitializeFromConfig(&config));
    PyConfig_Clear(&config);
    return Py_RunMain();
}
