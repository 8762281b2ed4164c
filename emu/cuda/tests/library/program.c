/* Parts of a program that uses the CUDA driver; it knows no header of CUDA. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef unsigned long long CUdeviceptr;
int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetErrorName(int error, const char **name);
int cuDeviceGetCount(int *count);
int cuDeviceGetName(char *name, int len, int device);
int cuDeviceGetPCIBusId(char *name, int len, int device);
int cuDeviceGetUuid_v2(unsigned char *uuid, int device);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuMemAlloc_v2(CUdeviceptr *at, size_t bytes);
int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **params, void **extra);
int cuStreamQuery(void *stream);

static const char *spin =
    ".version 8.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry spin()\n{\nagain:\nbra.uni again;\n}\n";

static void must(int code)
{
    if (code != 0) {
        const char *name = NULL;
        cuGetErrorName(code, &name);
        fprintf(stderr, "a call failed with %d, %s\n", code, name ? name : "?");
        _exit(1);
    }
}

static void current(void)
{
    void *context;
    must(cuInit(0));
    must(cuDevicePrimaryCtxRetain(&context, 0));
    must(cuCtxSetCurrent(context));
}

static void devices(void)
{
    int count = 0, version = 0;
    const char *error = "?";
    char name[64];
    int before = cuDeviceGetCount(&count);
    must(cuDriverGetVersion(&version));
    must(cuGetErrorName(before, &error));
    printf("before cuInit: %d, version %d, %s\n", before, version, error);
    must(cuInit(0));
    must(cuDeviceGetCount(&count));
    must(cuDeviceGetName(name, sizeof name, 0));
    printf("%d devices, %s\n", count, name);
}

static void order(void)
{
    int count = 0;
    must(cuInit(0));
    must(cuDeviceGetCount(&count));
    for (int device = 0; device < count; device++) {
        char bus[16];
        unsigned char uuid[16];
        must(cuDeviceGetPCIBusId(bus, sizeof bus, device));
        must(cuDeviceGetUuid_v2(uuid, device));
        printf("%s, UUID ends with %d\n", bus, uuid[15]);
    }
}

static void init(void)
{
    const char *name = "?";
    int code = cuInit(0);
    must(cuGetErrorName(code, &name));
    printf("cuInit: %d %s\n", code, name);
}

static void wait_for(pid_t child)
{
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        exit(1);
}

static void forked(void)
{
    CUdeviceptr at;
    current();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        int init = cuInit(0);
        printf("child: cuInit %d, cuMemAlloc %d\n", init, cuMemAlloc_v2(&at, 16));
        exit(0);
    }
    wait_for(child);
    printf("parent: cuMemAlloc %d\n", cuMemAlloc_v2(&at, 16));
}

static void fork_first(void)
{
    CUdeviceptr at;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        current();
        printf("child: cuMemAlloc %d\n", cuMemAlloc_v2(&at, 16));
        exit(0);
    }
    wait_for(child);
    current();
    printf("parent: cuMemAlloc %d\n", cuMemAlloc_v2(&at, 16));
}

static void spinning(void)
{
    void *module, *function;
    current();
    must(cuModuleLoadData(&module, spin));
    must(cuModuleGetFunction(&function, module, "spin"));
    must(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
    printf("running: %d\n", cuStreamQuery(NULL));
}

static void at_end(void *what)
{
    CUdeviceptr at;
    printf("%s: %d\n", (const char *)what, cuMemAlloc_v2(&at, 16));
}

static void at_exit(void)
{
    at_end("process");
}

static pthread_key_t key;

static void *of_thread(void *nothing)
{
    /* Destructors of keys run after those of thread-local objects. */
    pthread_setspecific(key, "thread");
    current();
    return nothing;
}

static void end(void)
{
    pthread_t thread;
    if (pthread_key_create(&key, at_end) || atexit(at_exit) || pthread_create(&thread, NULL, of_thread, NULL)
        || pthread_join(thread, NULL))
        exit(1);
    current();
}

static void closed(void)
{
    int count = 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(library, "cuInit");
    int (*get_count)(int *) = (int (*)(int *))dlsym(library, "cuDeviceGetCount");
    must(init(0));
    dlclose(library);
    must(get_count(&count));
    printf("%d devices after dlclose\n", count);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*part)(void);
    } parts[] = { { "devices", devices }, { "order", order }, { "init", init }, { "fork", forked }, { "fork-first", fork_first },
                  { "spin", spinning }, { "end", end }, { "close", closed } };
    for (size_t i = 0; argc == 2 && i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(argv[1], parts[i].name) == 0) {
            parts[i].part();
            return 0;
        }
    }
    return 2;
}
