// The objects behind the C interface's handles, for every kind of problem.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cosmati.h"
#include "cosmati/ops/find.h"
#include "cosmati/ops/operation.h"
#include "src/c_api/given.h"

// A plan that is ready to run. Immutable.
struct cosmati_plan {
  cosmati_plan() = default;
  cosmati_plan(cosmati_plan const&) = delete;
  cosmati_plan& operator=(cosmati_plan const&) = delete;
  virtual ~cosmati_plan() = default;
  // Allocates nothing unless it fails.
  virtual void run(cosmati::c_api::Given& given, void* workspace, std::size_t bytes,
                   cosmati::Stream stream) const = 0;

  struct Entry {
    cosmati::Considered considered;
    double measured_seconds = 0;
  };
  // Sets the explanation: one line per entry.
  void explain();

  std::string kernel;
  std::string explanation;
  std::size_t workspace_bytes = 0;
  std::vector<Entry> entries;
};

// A validated problem. Immutable.
struct cosmati_problem {
  cosmati_problem() = default;
  cosmati_problem(cosmati_problem const&) = delete;
  cosmati_problem& operator=(cosmati_problem const&) = delete;
  virtual ~cosmati_problem() = default;
  virtual std::unique_ptr<cosmati_plan> make_plan(cosmati::Device const& device,
                                                  cosmati::PlanOptions const& options) const = 0;
  virtual std::unique_ptr<cosmati_plan> find_plan(cosmati::Device const& device,
                                                  cosmati::FindOptions const& options) const = 0;
};
