// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// A tool that NVTX loads where NVTX_INJECTION64_PATH names it, as profilers are loaded: writes the
// ranges that are pushed and popped to the file that NVTX_RECORD names.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>

namespace {

std::FILE* record() {
  static std::FILE* const file = std::fopen(std::getenv("NVTX_RECORD"), "w");
  return file;
}

int NVTX_API push(const char* name) { return std::fprintf(record(), "push %s\n", name); }

int NVTX_API pop() { return std::fprintf(record(), "pop\n"); }

}  // namespace

/// NVTX looks for a function of this name.
extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_table) {
  const auto* const callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable functions = nullptr;
  unsigned int count = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &functions, &count) == 0) {
    return 0;
  }
  *functions[NVTX_CBID_CORE_RangePushA] = reinterpret_cast<NvtxFunctionPointer>(&push);
  *functions[NVTX_CBID_CORE_RangePop] = reinterpret_cast<NvtxFunctionPointer>(&pop);
  return 1;
}
