/*
 * Chromium computes WebGPU without a GPU on SwiftShader, which it loads as a library. In its place this
 * one hands over the system's Vulkan, where Mesa's llvmpipe is, and says that the device is
 * SwiftShader: Chromium takes no other that computes on the CPU.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef void (*Function)(void);
typedef Function (*Lookup)(void *instance, const char *name);

/* VkPhysicalDeviceProperties begins with four numbers: versions of Vulkan and driver, vendor, device. */
typedef void (*Describe)(void *device, uint32_t *properties);
/* VkPhysicalDeviceProperties2 has a type and a pointer before them. */
typedef struct { uint64_t type; void *next; uint32_t properties[4]; } Properties2;
typedef void (*Describe2)(void *device, Properties2 *properties);

static Lookup system_lookup;
static Describe system_describe;
static Describe2 system_describe2;

static void rename_device(uint32_t *properties) {
  properties[2] = 0x1AE0;
  properties[3] = 0xC0DE;
}

static void describe(void *device, uint32_t *properties) {
  system_describe(device, properties);
  rename_device(properties);
}

static void describe2(void *device, Properties2 *properties) {
  system_describe2(device, properties);
  rename_device(properties->properties);
}

__attribute__((visibility("default")))
Function vkGetInstanceProcAddr(void *instance, const char *name) {
  if (!system_lookup) {
    void *library = dlopen(VULKAN, RTLD_NOW | RTLD_LOCAL);
    if (!library) fprintf(stderr, "%s\n", dlerror());
    else system_lookup = (Lookup)dlsym(library, "vkGetInstanceProcAddr");
  }
  if (!system_lookup) return NULL;
  if (!strcmp(name, "vkGetInstanceProcAddr")) return (Function)vkGetInstanceProcAddr;
  Function found = system_lookup(instance, name);
  if (found && !strcmp(name, "vkGetPhysicalDeviceProperties")) {
    system_describe = (Describe)found;
    return (Function)describe;
  }
  if (found && (!strcmp(name, "vkGetPhysicalDeviceProperties2") ||
                !strcmp(name, "vkGetPhysicalDeviceProperties2KHR"))) {
    system_describe2 = (Describe2)found;
    return (Function)describe2;
  }
  return found;
}
