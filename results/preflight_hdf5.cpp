// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "results/field_visitors.hpp"
#include "results/run_hdf5.hpp"

namespace isoscale::results {

namespace {

using preflight::CheckResult;
using preflight::Verdict;

struct Table {
  std::vector<std::string> name, host, device, what, cost, fix;
  std::vector<std::uint8_t> verdict, allowed;
};

std::vector<std::string> verdict_names() {
  std::vector<std::string> names;
  for (const Verdict verdict : preflight::all_verdicts) {
    names.emplace_back(preflight::name(verdict));
  }
  return names;
}

template <class Visitor, class Columns, class Text>
void visit_preflight(Visitor& visit, Columns& table, Text& facts) {
  visit.column("name", table.name, {"text", "of the check, as --allow takes it"});
  visit.codes("verdict", table.verdict, verdict_names(), {"1", "code of the verdict"});
  visit.column("host", table.host, {"text", "hosts that it is about; empty = the whole job"});
  visit.column("device", table.device, {"text", "GPU, port or rank; empty = none"});
  visit.column("what", table.what, {"text", "what was found, or compared"});
  visit.column("cost", table.cost, {"text", "what it costs; empty = nothing"});
  visit.column("fix", table.fix, {"text", "what to do; empty = nothing"});
  visit.column("allowed", table.allowed, {"1", "1 = a stop that --allow let pass"});
  visit.text("facts", facts, {"text", "the facts that were judged, as JSON"});
}

}  // namespace

void put_preflight(hdf5::Group& group, const PreflightData& preflight) {
  Table table;
  for (const CheckResult& result : preflight.results) {
    table.name.push_back(result.name);
    table.verdict.push_back(static_cast<std::uint8_t>(result.verdict));
    table.host.push_back(result.host);
    table.device.push_back(result.device);
    table.what.push_back(result.what);
    table.cost.push_back(result.cost);
    table.fix.push_back(result.fix);
    table.allowed.push_back(result.allowed ? 1 : 0);
  }
  PutFields put{group};
  visit_preflight(put, table, preflight.facts);
}

PreflightData get_preflight(const hdf5::Group& group, int minor) {
  PreflightData preflight;
  Table t;
  GetFields get{group, minor};
  visit_preflight(get, t, preflight.facts);
  require_lengths({t.name.size(), t.verdict.size(), t.host.size(), t.device.size(), t.what.size(),
                   t.cost.size(), t.fix.size(), t.allowed.size()},
                  "the columns of preflight differ in length");
  for (std::size_t row = 0; row < t.name.size(); ++row) {
    preflight.results.push_back({.name = t.name[row],
                                 .verdict = static_cast<Verdict>(t.verdict[row]),
                                 .host = t.host[row],
                                 .device = t.device[row],
                                 .what = t.what[row],
                                 .cost = t.cost[row],
                                 .fix = t.fix[row],
                                 .allowed = t.allowed[row] != 0});
  }
  return preflight;
}

}  // namespace isoscale::results
