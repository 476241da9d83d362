// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "config/gpu_bind.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace isoscale::config {
namespace {

constexpr std::string_view decimal = "0123456789";
constexpr std::string_view hexadecimal = "0123456789abcdefABCDEF";

/// Between one and `most` of these characters and nothing else.
bool consists_of(std::string_view text, std::string_view characters, std::size_t most) {
  return !text.empty() && text.size() <= most &&
         text.find_first_not_of(characters) == std::string_view::npos;
}

bool is_index(std::string_view text) {
  constexpr std::size_t digits = 4;
  return consists_of(text, decimal, digits) && (text == "0" || text.front() != '0');
}

bool is_uuid(std::string_view text) {
  constexpr std::size_t prefix = 4, longest = 80;
  const std::string_view rest = text.substr(std::min(prefix, text.size()));
  return (text.starts_with("GPU-") || text.starts_with("MIG-")) &&
         consists_of(rest, "0123456789abcdefABCDEF-", longest);
}

/// [domain:]bus:device.function
bool is_pci_bus_id(std::string_view text) {
  constexpr std::size_t domain_digits = 8, bus_digits = 2;
  const auto dot = text.rfind('.');
  const auto colon = text.rfind(':');
  if (dot == std::string_view::npos || colon == std::string_view::npos || colon > dot) return false;
  if (!consists_of(text.substr(dot + 1), "01234567", 1)) return false;
  if (!consists_of(text.substr(colon + 1, dot - colon - 1), hexadecimal, bus_digits)) return false;
  std::string_view bus = text.substr(0, colon);
  if (const auto domain = bus.find(':'); domain != std::string_view::npos) {
    if (!consists_of(bus.substr(0, domain), hexadecimal, domain_digits)) return false;
    bus.remove_prefix(domain + 1);
  }
  return consists_of(bus, hexadecimal, bus_digits);
}

GpuName parse_one(std::string_view entry, std::string_view whole) {
  using Kind = GpuName::Kind;
  if (is_index(entry)) return {.kind = Kind::index, .text = std::string{entry}};
  if (is_uuid(entry)) return {.kind = Kind::uuid, .text = std::string{entry}};
  if (is_pci_bus_id(entry)) return {.kind = Kind::pci_bus_id, .text = std::string{entry}};
  throw base::UsageError(fmt::format(
      "{} holds {}: write 'auto', or for each rank of a node an index among the visible GPUs, a "
      "UUID (GPU-...) or a PCI bus id, such as 2,3,0,1",
      base::quoted(whole), base::quoted(entry)));
}

}  // namespace

std::vector<GpuName> parse_gpu_bind(std::string_view text) {
  std::vector<GpuName> gpus;
  for (std::string_view rest = text;;) {
    const auto comma = rest.find(',');
    gpus.push_back(parse_one(rest.substr(0, comma), text));
    if (comma == std::string_view::npos) return gpus;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace isoscale::config
