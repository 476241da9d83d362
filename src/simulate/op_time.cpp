// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "simulate/op_time.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "simulate/collective_time.hpp"
#include "simulate/gemm_time.hpp"
#include "simulate/measured_time.hpp"
#include "simulate/part_time.hpp"
#include "simulate/reached.hpp"

namespace isoscale::simulate {
namespace {

using program::DType;
using program::OpKind;

[[noreturn]] void refuse(const Machine& machine, std::string_view what) {
  throw base::UsageError(
      fmt::format("{} says nothing of {}; add it to the system file, or measure it",
                  machine.name.empty() ? "the machine" : machine.name, what));
}

/// Of communication that neither a sheet nor a measurement tells the time of.
[[noreturn]] void refuse_communication(const Machine& machine, std::string_view what,
                                       const GroupPlace& place) {
  if (place.nodes <= 1 || machine.measured.communication.empty()) {
    refuse(machine, fmt::format("{} between ranks", what));
  }
  throw base::UsageError(
      fmt::format("{}: nothing was measured of {} between nodes; measure on two nodes or more, "
                  "take the numbers "
                  "of a data sheet with --network h100-ndr (isoscale list systems), or give "
                  "--nodes-of a number of ranks that holds all",
                  machine.name.empty() ? "the machine" : machine.name, what));
}

/// Both types of fp8 have one rate.
DType rate_type(DType type) { return type == DType::e5m2 ? DType::e4m3 : type; }

double times_of(const DeviceMemory& memory, OpKind kind) {
  const auto found = std::ranges::find(memory.traffic, kind, &Traffic::kind);
  return found == memory.traffic.end() ? 1 : found->times;
}

double operand_bytes(const program::Gemm& gemm, DType type) {
  const double m = gemm.m, n = gemm.n, k = gemm.k, batch = gemm.batch;
  const double elements = m * k + k * n + (gemm.beta != 0 ? 2 : 1) * m * n;
  return elements * batch * static_cast<double>(program::element_size(type));
}

}  // namespace

const MatrixRate& rate_of(const Machine& machine, program::ComputeMode mode, DType type) {
  if (machine.processor) {
    for (const MatrixRate& rate : machine.processor->matrix) {
      if (rate.type == rate_type(type) && rate.mode == mode) return rate;
    }
  }
  refuse(machine,
         fmt::format("GEMMs in {}",
                     mode == program::ComputeMode::tf32 ? "tf32" : program::name(rate_type(type))));
}

double launch_of(const Machine& machine) {
  return machine.processor ? machine.processor->launch : 0;
}

double gap_of(const Machine& machine) { return machine.measured.empty() ? 0 : launch_of(machine); }

double memory_seconds(const Machine& machine, double bytes) {
  const DeviceMemory& memory = *machine.memory;
  return bytes / (memory.bandwidth * reached_share(memory.reached, bytes));
}

double gemm_time(const Machine& machine, const program::Gemm& gemm, DType type, double bytes) {
  if (const auto known = measured_gemm_seconds(machine.measured, gemm, type)) {
    return launch_of(machine) + *known;
  }
  const MatrixRate& rate = rate_of(machine, gemm.mode, type);
  const GemmShape shape{.m = static_cast<double>(gemm.m),
                        .n = static_cast<double>(gemm.n),
                        .k = static_cast<double>(gemm.k),
                        .batch = static_cast<double>(gemm.batch)};
  const double multiplies = multiply_seconds(*machine.processor, rate, shape);
  const double moves = machine.memory ? memory_seconds(machine, bytes) : 0;
  return launch_of(machine) + std::max(multiplies, moves);
}

double local_time(const Machine& machine, OpKind kind, double bytes, double moved) {
  if (const auto known = measured_local_seconds(machine.measured, kind, bytes)) {
    return launch_of(machine) + *known;
  }
  if (!machine.memory) refuse(machine, "the bandwidth of device memory");
  return launch_of(machine) + memory_seconds(machine, moved * times_of(*machine.memory, kind));
}

double gemm_seconds(const Machine& machine, const program::Gemm& gemm, DType type) {
  return gemm_time(machine, gemm, type, operand_bytes(gemm, type));
}

double local_seconds(const Machine& machine, OpKind kind, double bytes) {
  return local_time(machine, kind, bytes, bytes);
}

double collective_seconds(const Machine& machine, OpKind kind, double bytes,
                          const GroupPlace& place) {
  if (place.members <= 1) return 0;
  if (const auto known = measured_collective_seconds(machine.measured, kind, bytes, place)) {
    return *known;
  }
  if (!machine.network) refuse_communication(machine, program::name(kind), place);
  return network_collective(*machine.network, kind, bytes, place).seconds;
}

double message_seconds(const Machine& machine, double bytes, const GroupPlace& place) {
  if (const auto known = measured_message_seconds(machine.measured, bytes, place)) return *known;
  if (!machine.network) refuse_communication(machine, "messages", place);
  return network_message(*machine.network, bytes, place);
}

}  // namespace isoscale::simulate
