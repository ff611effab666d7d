/* A libnvidia-ml.so.1 whose faults are switched live: every call reads the text file named by TUILAB_FAKE_NVML.

   gpus=2            how many there are
   mode=ok           ok, version_mismatch, not_loaded, no_permission, unknown (all at start), lost, hang, segfault, stuck
   stuck=PATH        what mode=stuck opens: a file of `stuck_file.py`, which holds a process so that no signal ends it
   mode.1=lost       the same for one GPU
   missing=power     this call answers "function not found"; na=power: "not supported"
   power.0=250000    a value, for one GPU or (without .0) for all; names are those in the calls of `number` below
   pids.0=17,18      the processes on a GPU, each with `pid_bytes`
   util.0=17:80,18:3 the processes that kept it busy since they were asked about last, and for how many percent of the time
   slices.0=2        how many slices a GPU is cut into (MIG); `used.0:1=7` is about the second slice of the first GPU
   denied=memory_v2  "insufficient permissions"
   sleep_ms.0=20     how long each question about a GPU takes
   log=/tmp/calls    a file that gets a line for each question: index of the GPU, its slice if it is one, and the call

   Signatures and codes are those of nvml.h; the structs those that pynvml 13 passes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, NO_SIZE = 7, NOT_LOADED = 9, TIMEOUT = 10, NO_FUNCTION = 13, LOST = 15,
       VERSION_MISMATCH = 18, UNKNOWN = 999 };
typedef unsigned long long u64;
typedef struct { int index, slice; u64 events_seen; } Gpu; /* slice: 0 is the whole GPU, 1 its first slice */
static Gpu gpus[16][8];

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

static int look_up_of(const char *key, Gpu *gpu, char *value) {
    char name[64];
    snprintf(name, sizeof name, gpu->slice ? "%s.%d:%d" : "%s.%d", key, gpu->index, gpu->slice - 1);
    return look_up(name, value) || look_up(key, value);
}

static u64 number(const char *key, Gpu *gpu, u64 otherwise) {
    char value[256];
    return look_up_of(key, gpu, value) ? strtoull(value, NULL, 0) : otherwise;
}

static int is_listed(const char *key, Gpu *gpu, const char *word) {
    char value[256];
    if (!look_up_of(key, gpu, value)) return 0;
    for (char *part = strtok(value, ","); part; part = strtok(NULL, ","))
        if (!strcmp(part, word)) return 1;
    return 0;
}

/* Note a question, and take the time that it takes. */
static void hear(Gpu *gpu, const char *call) {
    char path[256];
    u64 sleep_ms = number("sleep_ms", gpu, 0);
    if (look_up("log", path)) {
        FILE *file = fopen(path, "a");
        if (file) {
            fprintf(file, "%d", gpu->index);
            if (gpu->slice) fprintf(file, ":%d", gpu->slice - 1);
            fprintf(file, " %s\n", call);
            fclose(file);
        }
    }
    if (sleep_ms) usleep((useconds_t)(1000 * sleep_ms));
}

/* What every question about a GPU meets first. */
static int trouble(Gpu *gpu, const char *call) {
    char mode[256] = "ok";
    look_up_of("mode", gpu, mode);
    if (!strcmp(mode, "segfault")) *(volatile int *)0 = 1;
    if (!strcmp(mode, "hang")) for (;;) pause();
    if (!strcmp(mode, "stuck") && look_up("stuck", mode)) close(open(mode, O_RDONLY));
    if (!strcmp(mode, "lost")) return LOST;
    if (is_listed("missing", gpu, call)) return NO_FUNCTION;
    if (is_listed("na", gpu, call)) return NOT_SUPPORTED;
    if (is_listed("denied", gpu, call)) return NO_PERMISSION;
    return OK;
}

static int tell(Gpu *gpu, const char *call, u64 otherwise, u64 *answer) {
    int code = trouble(gpu, call);
    if (code == OK) *answer = number(call, gpu, otherwise);
    return code;
}

/* What is told of whole GPUs only. */
static int tell_small(Gpu *gpu, const char *call, unsigned otherwise, unsigned *answer) {
    u64 wide = 0;
    int code;
    hear(gpu, call);
    code = gpu->slice ? NOT_SUPPORTED : tell(gpu, call, otherwise, &wide);
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

int nvmlDeviceGetCount_v2(unsigned *count) { 
    char value[256];
    *count = look_up("gpus", value) ? (unsigned)atoi(value) : 1;
    return OK;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Gpu **gpu) {
    *gpu = &gpus[index][0];
    **gpu = (Gpu){(int)index, 0, (*gpu)->events_seen};
    return trouble(*gpu, "handle");
}
int nvmlDeviceGetUUID(Gpu *gpu, char *text, unsigned length) {
    char value[256];
    if (look_up_of("uuid", gpu, value)) snprintf(text, length, "%s", value);
    else if (gpu->slice) snprintf(text, length, "MIG-fake-%d-%d", gpu->index, gpu->slice - 1);
    else snprintf(text, length, "GPU-fake-%d", gpu->index);
    return trouble(gpu, "uuid");
}
int nvmlDeviceGetName(Gpu *gpu, char *text, unsigned length) {
    char value[256] = "Fake GPU";
    if (gpu->slice) strcpy(value, "Fake GPU MIG 1g.10gb");
    look_up_of("name", gpu, value);
    snprintf(text, length, "%s", value);
    return trouble(gpu, "name");
}

typedef struct { u64 total, free, used; } Memory;
typedef struct { unsigned version; u64 total, reserved, free, used; } Memory2;
int nvmlDeviceGetMemoryInfo_v2(Gpu *gpu, Memory2 *memory) {
    int code = trouble(gpu, "memory_v2");
    hear(gpu, "memory");
    if (code == OK) code = tell(gpu, "used", 1000, &memory->used);
    if (code == OK) code = tell(gpu, "total", 80000, &memory->total);
    return code;
}
int nvmlDeviceGetMemoryInfo(Gpu *gpu, Memory *memory) {
    hear(gpu, "memory");
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
    int code = gpu->slice ? NOT_SUPPORTED : trouble(gpu, "event_reasons");
    hear(gpu, "throttle");
    return code == OK ? tell(gpu, "throttle", 0, mask) : code;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Gpu *gpu, u64 *mask) {
    hear(gpu, "throttle");
    return gpu->slice ? NOT_SUPPORTED : tell(gpu, "throttle", 0, mask);
}
int nvmlDeviceGetTotalEccErrors(Gpu *gpu, unsigned kind, unsigned counter, u64 *count) {
    (void)kind, (void)counter;
    hear(gpu, "ecc");
    return gpu->slice ? NOT_SUPPORTED : tell(gpu, "ecc", 0, count);
}

/* How it is set and plugged in: of whole GPUs only. */
int nvmlDeviceGetCurrPcieLinkGeneration(Gpu *gpu, unsigned *answer) { return tell_small(gpu, "pcie_generation", 5, answer); }
int nvmlDeviceGetMaxPcieLinkGeneration(Gpu *gpu, unsigned *answer) { return tell_small(gpu, "most_pcie_generation", 5, answer); }
int nvmlDeviceGetCurrPcieLinkWidth(Gpu *gpu, unsigned *answer) { return tell_small(gpu, "pcie_width", 16, answer); }
int nvmlDeviceGetMaxPcieLinkWidth(Gpu *gpu, unsigned *answer) { return tell_small(gpu, "most_pcie_width", 16, answer); }
int nvmlDeviceGetMaxClockInfo(Gpu *gpu, unsigned type, unsigned *mhz) {
    return type == 1 ? tell_small(gpu, "most_sm_clock", 1980, mhz) : tell_small(gpu, "most_memory_clock", 2619, mhz);
}
int nvmlDeviceGetPowerManagementLimit(Gpu *gpu, unsigned *milliwatts) { return tell_small(gpu, "power_limit", 700000, milliwatts); }
int nvmlDeviceGetPowerManagementDefaultLimit(Gpu *gpu, unsigned *milliwatts) {
    return tell_small(gpu, "usual_power_limit", 700000, milliwatts);
}
int nvmlDeviceGetPersistenceMode(Gpu *gpu, unsigned *is_on) { return tell_small(gpu, "persistence", 1, is_on); }
int nvmlDeviceGetEccMode(Gpu *gpu, unsigned *current, unsigned *pending) {
    *pending = 0;
    return tell_small(gpu, "ecc_mode", 1, current);
}
int nvmlDeviceGetRemappedRows(Gpu *gpu, unsigned *corrected, unsigned *uncorrected, unsigned *is_pending, unsigned *has_failed) {
    *uncorrected = (unsigned)number("rows_uncorrected", gpu, 0);
    *is_pending = (unsigned)number("rows_pending", gpu, 0);
    *has_failed = (unsigned)number("rows_failed", gpu, 0);
    return tell_small(gpu, "rows", 0, corrected);
}
/* `nvlinks=18` links, of which `nvlinks_up` are up; `p2p.0=1` is how the driver refuses to let the first GPU read of others. */
int nvmlDeviceGetNvLinkState(Gpu *gpu, unsigned link, unsigned *is_up) {
    u64 links = number("nvlinks", gpu, 0);
    if (link >= links) return links ? INVALID : NOT_SUPPORTED;
    return tell_small(gpu, "nvlink", link < number("nvlinks_up", gpu, links), is_up);
}
int nvmlDeviceGetP2PStatus(Gpu *gpu, Gpu *other, unsigned what, unsigned *status) {
    return what || other == gpu ? INVALID : tell_small(gpu, "p2p", 0, status);
}
typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char text[32]; } Bus;
int nvmlDeviceGetPciInfo_v3(Gpu *gpu, Bus *bus) {
    snprintf(bus->text, sizeof bus->text, "00000000:%02X:00.0", 0x17 + gpu->index);
    return trouble(gpu, "bus");
}

int nvmlDeviceGetMigMode(Gpu *gpu, unsigned *current, unsigned *pending) {
    *pending = 0;
    return tell_small(gpu, "mig", 0, current);
}
int nvmlDeviceGetMaxMigDeviceCount(Gpu *gpu, unsigned *count) {
    *count = number("slices", gpu, 0) ? 7 : 0;
    return trouble(gpu, "max_slices");
}
int nvmlDeviceGetMigDeviceHandleByIndex(Gpu *gpu, unsigned index, Gpu **slice) {
    if (index >= number("slices", gpu, 0)) return NOT_FOUND;
    *slice = &gpus[gpu->index][index + 1];
    **slice = (Gpu){gpu->index, (int)index + 1, 0};
    return trouble(*slice, "handle");
}

typedef struct { unsigned pid; u64 bytes; unsigned gpu_instance, compute_instance; } Process;
int nvmlDeviceGetComputeRunningProcesses_v3(Gpu *gpu, unsigned *count, Process *processes) {
    char value[256] = "";
    unsigned room = *count;
    int code = trouble(gpu, "processes");
    if (!processes) hear(gpu, "processes");
    if (code != OK) return code;
    look_up_of("pids", gpu, value);
    *count = 0;
    for (char *part = strtok(value, ","); part; part = strtok(NULL, ","), ++*count)
        if (*count < room) processes[*count] = (Process){(unsigned)atoi(part), 0, 0, 0};
    for (unsigned i = 0; i < *count && i < room; i++) processes[i].bytes = number("pid_bytes", gpu, 300);
    return *count > room ? NO_SIZE : OK;
}

typedef struct { unsigned pid; u64 time_us; unsigned sm, memory, encoder, decoder; } Share;
int nvmlDeviceGetProcessUtilization(Gpu *gpu, Share *shares, unsigned *count, u64 since_us) {
    static u64 now_us = 1000;
    char value[256] = "";
    unsigned room = shares ? *count : 0;
    int code = gpu->slice ? NOT_SUPPORTED : trouble(gpu, "util");
    if (!shares) hear(gpu, "util");
    if (code != OK) return code;
    look_up_of("util", gpu, value);
    *count = 0;
    if (room) now_us += 1000;
    for (char *part = strtok(value, ","); part; part = strtok(NULL, ","), ++*count)
        if (*count < room) {
            char *share = strchr(part, ':');
            shares[*count] = (Share){(unsigned)atoi(part), since_us + now_us, share ? (unsigned)atoi(share + 1) : 0, 0, 0, 0};
        }
    return !*count ? NOT_FOUND : *count > room ? NO_SIZE : OK;
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
    u64 events = number("events", set->gpu, 0);
    (void)timeout_ms;
    if (events == set->gpu->events_seen) return TIMEOUT;
    set->gpu->events_seen = events;
    *event = (Event){set->gpu, 8, number("xid", set->gpu, 31), 0, 0};
    return OK;
}
