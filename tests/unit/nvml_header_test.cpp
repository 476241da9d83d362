// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
// The declarations of NVML are compared with the header of the CUDA toolkit, where there is one.
#include <nvml.h>

#include "machine/nvml_library.hpp"
#include "matchers.hpp"

namespace isoscale::machine {
namespace {

template <class Ours, class Theirs>
constexpr bool same_place = sizeof(Ours) == sizeof(Theirs) && alignof(Ours) == alignof(Theirs);
static_assert(same_place<nvml::Device, nvmlDevice_t>);
static_assert(same_place<nvml::Memory, nvmlMemory_t>);
static_assert(same_place<nvml::PciInfo, nvmlPciInfo_t>);
static_assert(same_place<nvml::FabricInfo, nvmlGpuFabricInfo_t>);
static_assert(same_place<nvml::ProcessInfo, nvmlProcessInfo_t>);
static_assert(same_place<nvml::Utilisation, nvmlUtilization_t>);
static_assert(same_place<nvml::FieldValue, nvmlFieldValue_t>);

template <class... Enumerations>
constexpr bool are_passed_as_int = ((sizeof(Enumerations) == sizeof(int)) && ...);
static_assert(
    are_passed_as_int<nvmlReturn_t, nvmlClockType_t, nvmlEnableState_t, nvmlComputeMode_t,
                      nvmlMemoryErrorType_t, nvmlEccCounterType_t, nvmlPageRetirementCause_t,
                      nvmlGpuTopologyLevel_t, nvmlGpuP2PCapsIndex_t, nvmlGpuP2PStatus_t,
                      nvmlTemperatureSensors_t>);

/// Only members that Isoscale reads are compared; the first member of each is at its beginning.
TEST(NvmlHeader, HasTheStructuresThatAreDeclared) {
  EXPECT_EQ(offsetof(nvml::Memory, total), offsetof(nvmlMemory_t, total));
  EXPECT_EQ(offsetof(nvml::Memory, used), offsetof(nvmlMemory_t, used));
  EXPECT_EQ(offsetof(nvml::PciInfo, bus_id), offsetof(nvmlPciInfo_t, busId));
  EXPECT_EQ(offsetof(nvml::FabricInfo, status), offsetof(nvmlGpuFabricInfo_t, status));
  EXPECT_EQ(offsetof(nvml::FabricInfo, clique), offsetof(nvmlGpuFabricInfo_t, cliqueId));
  EXPECT_EQ(offsetof(nvml::FabricInfo, state), offsetof(nvmlGpuFabricInfo_t, state));
  EXPECT_EQ(offsetof(nvml::FieldValue, scope), offsetof(nvmlFieldValue_t, scopeId));
  EXPECT_EQ(offsetof(nvml::FieldValue, type), offsetof(nvmlFieldValue_t, valueType));
  EXPECT_EQ(offsetof(nvml::FieldValue, answer), offsetof(nvmlFieldValue_t, nvmlReturn));
  EXPECT_EQ(offsetof(nvml::FieldValue, value), offsetof(nvmlFieldValue_t, value));
}

TEST(NvmlHeader, HasTheAnswersAndStatesThatAreDeclared) {
  EXPECT_EQ(nvml::success, NVML_SUCCESS);
  EXPECT_EQ(nvml::not_supported, NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(nvml::no_permission, NVML_ERROR_NO_PERMISSION);
  EXPECT_EQ(nvml::insufficient_size, NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(nvml::operating_system, NVML_ERROR_OPERATING_SYSTEM);
  EXPECT_EQ(nvml::fabric_not_supported, NVML_GPU_FABRIC_STATE_NOT_SUPPORTED);
  EXPECT_EQ(nvml::fabric_not_started, NVML_GPU_FABRIC_STATE_NOT_STARTED);
  EXPECT_EQ(nvml::fabric_in_progress, NVML_GPU_FABRIC_STATE_IN_PROGRESS);
  EXPECT_EQ(nvml::fabric_completed, NVML_GPU_FABRIC_STATE_COMPLETED);
  EXPECT_EQ(nvml::p2p_ok, NVML_P2P_STATUS_OK);
  EXPECT_EQ(nvml::p2p_unknown, NVML_P2P_STATUS_UNKNOWN);
  EXPECT_EQ(nvml::one_board, NVML_TOPOLOGY_INTERNAL);
  EXPECT_EQ(nvml::one_switch, NVML_TOPOLOGY_SINGLE);
  EXPECT_EQ(nvml::several_switches, NVML_TOPOLOGY_MULTIPLE);
  EXPECT_EQ(nvml::host_bridge, NVML_TOPOLOGY_HOSTBRIDGE);
  EXPECT_EQ(nvml::numa_node, NVML_TOPOLOGY_NODE);
  EXPECT_EQ(nvml::whole_system, NVML_TOPOLOGY_SYSTEM);
  EXPECT_EQ(nvml::idle_reason, static_cast<unsigned long long>(nvmlClocksEventReasonGpuIdle));
}

TEST(NvmlHeader, HasTheQuestionsThatAreDeclared) {
  EXPECT_EQ(nvml::graphics_clock, NVML_CLOCK_GRAPHICS);
  EXPECT_EQ(nvml::sm_clock, NVML_CLOCK_SM);
  EXPECT_EQ(nvml::memory_clock, NVML_CLOCK_MEM);
  EXPECT_EQ(nvml::most_links, static_cast<unsigned>(NVML_NVLINK_MAX_LINKS));
  EXPECT_EQ(nvml::gpu_temperature, NVML_TEMPERATURE_GPU);
  EXPECT_EQ(nvml::corrected, NVML_MEMORY_ERROR_TYPE_CORRECTED);
  EXPECT_EQ(nvml::uncorrected, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
  EXPECT_EQ(nvml::volatile_count, NVML_VOLATILE_ECC);
  EXPECT_EQ(nvml::aggregate_count, NVML_AGGREGATE_ECC);
  EXPECT_EQ(nvml::several_single_bit_errors,
            NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS);
  EXPECT_EQ(nvml::double_bit_error, NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR);
  EXPECT_EQ(nvml::p2p_read, NVML_P2P_CAPS_INDEX_READ);
  EXPECT_EQ(nvml::p2p_write, NVML_P2P_CAPS_INDEX_WRITE);
  EXPECT_EQ(nvml::p2p_nvlink, NVML_P2P_CAPS_INDEX_NVLINK);
  EXPECT_EQ(nvml::nvlink_sent, static_cast<unsigned>(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX));
  EXPECT_EQ(nvml::nvlink_received, static_cast<unsigned>(NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX));
  EXPECT_EQ(nvml::power_now, static_cast<unsigned>(NVML_FI_DEV_POWER_INSTANT));
  EXPECT_EQ(nvml::unsigned_int, NVML_VALUE_TYPE_UNSIGNED_INT);
  EXPECT_EQ(nvml::unsigned_long_long, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
}

}  // namespace
}  // namespace isoscale::machine
