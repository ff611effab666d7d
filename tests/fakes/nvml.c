/* A libnvidia-ml.so.1 whose faults are switched live: every call reads the text file named by TUILAB_FAKE_NVML.

   gpus=2            how many there are
   mode=ok           ok, version_mismatch, not_loaded, no_permission, unknown (all at start), lost, hang, segfault, stuck
   stuck=PATH        what mode=stuck opens: a file of `stuck_file.py`, which holds a process so that no signal ends it
   mode.1=lost       the same for one GPU
   missing=power     this call answers "function not found"; na=power: "not supported"
   power.0=250000    a value, for one GPU or (without .0) for all; names are those in the calls of `number` below
   pids.0=17,18      the processes on a GPU, each with `pid_bytes`

   Signatures and codes are those of nvml.h; the structs those that pynvml 13 passes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NO_SIZE = 7, NOT_LOADED = 9, TIMEOUT = 10, NO_FUNCTION = 13, LOST = 15,
       VERSION_MISMATCH = 18, UNKNOWN = 999 };
typedef unsigned long long u64;
typedef struct { int index; u64 events_seen; } Gpu;
static Gpu gpus[16];

/* Copy the value of `key` into `value`; return 0 when the file does not name it. */
static int look_up(const char *key, char *value) {
    const char *path = getenv("TUILAB_FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    char line[256];
    size_t length = strlen(key);
    int found = 0;
    while (file && !found && fgets(line, sizeof line, file))
        if (!strncmp(line, key, length) && line[length] == '=') {
            line[strcspn(line, "\n")] = 0;
            strcpy(value, line + length + 1);
            found = 1;
        }
    if (file) fclose(file);
    return found;
}

static int look_up_of(const char *key, int index, char *value) {
    char name[64];
    snprintf(name, sizeof name, "%s.%d", key, index);
    return look_up(name, value) || look_up(key, value);
}

static u64 number(const char *key, int index, u64 otherwise) {
    char value[256];
    return look_up_of(key, index, value) ? strtoull(value, NULL, 0) : otherwise;
}

static int is_listed(const char *key, int index, const char *word) {
    char value[256];
    if (!look_up_of(key, index, value)) return 0;
    for (char *part = strtok(value, ","); part; part = strtok(NULL, ","))
        if (!strcmp(part, word)) return 1;
    return 0;
}

/* What every question about a GPU meets first. */
static int trouble(Gpu *gpu, const char *call) {
    char mode[256] = "ok";
    look_up_of("mode", gpu->index, mode);
    if (!strcmp(mode, "segfault")) *(volatile int *)0 = 1;
    if (!strcmp(mode, "hang")) for (;;) pause();
    if (!strcmp(mode, "stuck") && look_up("stuck", mode)) close(open(mode, O_RDONLY));
    if (!strcmp(mode, "lost")) return LOST;
    if (is_listed("missing", gpu->index, call)) return NO_FUNCTION;
    if (is_listed("na", gpu->index, call)) return NOT_SUPPORTED;
    return OK;
}

static int tell(Gpu *gpu, const char *call, u64 otherwise, u64 *answer) {
    int code = trouble(gpu, call);
    if (code == OK) *answer = number(call, gpu->index, otherwise);
    return code;
}

static int tell_small(Gpu *gpu, const char *call, unsigned otherwise, unsigned *answer) {
    u64 wide = 0;
    int code = tell(gpu, call, otherwise, &wide);
    if (code == OK) *answer = (unsigned)wide;
    return code;
}

int nvmlInitWithFlags(unsigned flags) {
    char mode[256] = "ok";
    (void)flags;
    look_up("mode", mode);
    if (!strcmp(mode, "version_mismatch")) return VERSION_MISMATCH;
    if (!strcmp(mode, "not_loaded")) return NOT_LOADED;
    if (!strcmp(mode, "no_permission")) return NO_PERMISSION;
    if (!strcmp(mode, "unknown")) return UNKNOWN;
    return OK;
}
int nvmlShutdown(void) { return OK; }
const char *nvmlErrorString(int code) { return code == TIMEOUT ? "Timeout" : "an error that the fake made up"; }

int nvmlSystemGetDriverVersion(char *text, unsigned length) { snprintf(text, length, "999.99"); return OK; }
int nvmlSystemGetNVMLVersion(char *text, unsigned length) { snprintf(text, length, "13.999.99"); return OK; }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { *version = 13010; return OK; }

int nvmlDeviceGetCount_v2(unsigned *count) { *count = (unsigned)number("gpus", -1, 1); return OK; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Gpu **gpu) {
    gpus[index].index = (int)index;
    *gpu = &gpus[index];
    return trouble(*gpu, "handle");
}
int nvmlDeviceGetUUID(Gpu *gpu, char *text, unsigned length) {
    char value[256];
    if (look_up_of("uuid", gpu->index, value)) snprintf(text, length, "%s", value);
    else snprintf(text, length, "GPU-fake-%d", gpu->index);
    return trouble(gpu, "uuid");
}
int nvmlDeviceGetName(Gpu *gpu, char *text, unsigned length) {
    char value[256] = "Fake GPU";
    look_up_of("name", gpu->index, value);
    snprintf(text, length, "%s", value);
    return trouble(gpu, "name");
}

typedef struct { u64 total, free, used; } Memory;
typedef struct { unsigned version; u64 total, reserved, free, used; } Memory2;
int nvmlDeviceGetMemoryInfo_v2(Gpu *gpu, Memory2 *memory) {
    int code = trouble(gpu, "memory_v2");
    if (code == OK) code = tell(gpu, "used", 1000, &memory->used);
    if (code == OK) code = tell(gpu, "total", 80000, &memory->total);
    return code;
}
int nvmlDeviceGetMemoryInfo(Gpu *gpu, Memory *memory) {
    int code = tell(gpu, "used", 1000, &memory->used);
    if (code == OK) code = tell(gpu, "total", 80000, &memory->total);
    return code;
}

typedef struct { unsigned gpu, memory; } Utilization;
int nvmlDeviceGetUtilizationRates(Gpu *gpu, Utilization *rates) { return tell_small(gpu, "busy", 42, &rates->gpu); }
int nvmlDeviceGetPowerUsage(Gpu *gpu, unsigned *milliwatts) { return tell_small(gpu, "power", 250000, milliwatts); }
int nvmlDeviceGetTemperature(Gpu *gpu, unsigned sensor, unsigned *c) { (void)sensor; return tell_small(gpu, "temperature", 61, c); }
int nvmlDeviceGetClockInfo(Gpu *gpu, unsigned type, unsigned *mhz) {
    return type == 1 ? tell_small(gpu, "sm_clock", 1980, mhz) : tell_small(gpu, "memory_clock", 2619, mhz);
}
int nvmlDeviceGetCurrentClocksEventReasons(Gpu *gpu, u64 *mask) {
    int code = trouble(gpu, "event_reasons");
    return code == OK ? tell(gpu, "throttle", 0, mask) : code;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Gpu *gpu, u64 *mask) { return tell(gpu, "throttle", 0, mask); }
int nvmlDeviceGetTotalEccErrors(Gpu *gpu, unsigned kind, unsigned counter, u64 *count) {
    (void)kind, (void)counter;
    return tell(gpu, "ecc", 0, count);
}

int nvmlDeviceGetMigMode(Gpu *gpu, unsigned *current, unsigned *pending) {
    *pending = 0;
    return tell_small(gpu, "mig", 0, current);
}

typedef struct { unsigned pid; u64 bytes; unsigned gpu_instance, compute_instance; } Process;
int nvmlDeviceGetComputeRunningProcesses_v3(Gpu *gpu, unsigned *count, Process *processes) {
    char value[256] = "";
    unsigned room = *count;
    int code = trouble(gpu, "processes");
    if (code != OK) return code;
    look_up_of("pids", gpu->index, value);
    *count = 0;
    for (char *part = strtok(value, ","); part; part = strtok(NULL, ","), ++*count)
        if (*count < room) processes[*count] = (Process){(unsigned)atoi(part), 0, 0, 0};
    for (unsigned i = 0; i < *count && i < room; i++) processes[i].bytes = number("pid_bytes", gpu->index, 300);
    return *count > room ? NO_SIZE : OK;
}

/* One event set per GPU: `xid.0=79` is reported once for every new value of `events.0`. */
typedef struct { Gpu *gpu; } EventSet;
typedef struct { Gpu *gpu; u64 type, data; unsigned gpu_instance, compute_instance; } Event;
int nvmlEventSetCreate(EventSet **set) { *set = calloc(1, sizeof **set); return OK; }
int nvmlDeviceRegisterEvents(Gpu *gpu, u64 types, EventSet *set) {
    (void)types;
    set->gpu = gpu;
    return trouble(gpu, "events");
}
int nvmlEventSetWait_v2(EventSet *set, Event *event, unsigned timeout_ms) {
    u64 events = number("events", set->gpu->index, 0);
    (void)timeout_ms;
    if (events == set->gpu->events_seen) return TIMEOUT;
    set->gpu->events_seen = events;
    *event = (Event){set->gpu, 8, number("xid", set->gpu->index, 31), 0, 0};
    return OK;
}
