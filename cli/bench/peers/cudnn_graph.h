// A convolution by cuDNN's graph interface.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/bench/peers/cudnn_convolution.h"

namespace cosmati::cli {

// A descriptor of the backend interface, destroyed with its owner. Every call throws Error(system) if the
// library reports a failure.
class CudnnObject {
 public:
  explicit CudnnObject(cudnn::ObjectKind kind);
  CudnnObject(CudnnObject&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  CudnnObject& operator=(CudnnObject&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~CudnnObject();

  void* handle() const { return handle_; }
  void set(cudnn::Attribute attribute, cudnn::ElementKind kind, std::int64_t count,
           void const* elements) const;
  // Sets one element or an array of elements whose type determines cuDNN's attribute type.
  template <class Element>
  void set(cudnn::Attribute attribute, Element const& element) const {
    using One = std::remove_extent_t<Element>;
    set(attribute, kind_of(static_cast<One const*>(nullptr)),
        static_cast<std::int64_t>(sizeof element / sizeof(One)), &element);
  }
  void set(cudnn::Attribute attribute, CudnnObject const& object) const {
    set(attribute, cudnn::ElementKind::object, 1, &object.handle_);
  }
  void finalize() const;
  // Writes at most `maximum` elements and returns the number available.
  std::int64_t get(cudnn::Attribute attribute, cudnn::ElementKind kind, std::int64_t maximum,
                   void* elements) const;
  std::int64_t integer(cudnn::Attribute attribute) const;

 private:
  static cudnn::ElementKind kind_of(std::int64_t const*) { return cudnn::ElementKind::int64; }
  static cudnn::ElementKind kind_of(float const*) { return cudnn::ElementKind::f32; }
  static cudnn::ElementKind kind_of(double const*) { return cudnn::ElementKind::f64; }
  static cudnn::ElementKind kind_of(void* const*) { return cudnn::ElementKind::pointer; }
  static cudnn::ElementKind kind_of(cudnn::Context* const*) { return cudnn::ElementKind::handle; }
  static cudnn::ElementKind kind_of(cudnn::Number const*) { return cudnn::ElementKind::data_type; }
  static cudnn::ElementKind kind_of(cudnn::Mode const*) { return cudnn::ElementKind::convolution_mode; }
  static cudnn::ElementKind kind_of(cudnn::HeuristicMode const*) {
    return cudnn::ElementKind::heuristic_mode;
  }

  void* handle_ = nullptr;
};

// The operation graph of one convolution, and the plans that cuDNN's heuristics offer for it.
class CudnnGraph {
 public:
  struct Plan {
    CudnnObject configuration, plan;
    std::string engine;  // the engine's number and its knobs, e.g. "engine 62 k2=10 k3=1"
    std::size_t workspace_bytes = 0;
  };
  struct Plans {
    std::vector<Plan> plans;   // in the order of the heuristics: mode A, mode B, the fallback list
    int other_numerics = 0;    // configurations of engines that round more than the type allows
    int refused = 0;           // configurations that fail to finalize
    int too_large = 0;         // plans whose workspace exceeds the limit
    std::string last_failure;  // message of the last mode or plan that failed
    struct LeftOut {
      std::string engine, reason;
      std::size_t workspace_bytes = 0;
    };
    std::vector<LeftOut> left_out = {};  // the excluded configurations counted above
    std::string reason() const;          // why there is no plan
    // `count`: one of the counts above.
    void leave_out(int& count, std::string const& engine, std::string const& why, std::size_t bytes = 0);
    void refuse(std::string const& engine, std::string const& why);
  };

  // `context` belongs to the GPU `ordinal`. With `device`, finalized properties of a device, it plans without
  // a GPU, and `context` may be null. The addresses of the arrays are multiples of `alignment` bytes.
  CudnnGraph(cudnn::Context* context, int ordinal, CudnnConvolution const& convolution,
             std::int64_t alignment, CudnnObject const* device = nullptr);

  // Returns at most `max_plans` plans whose workspace is at most `max_bytes`; a sixth of them is reserved
  // for the fallback list.
  Plans plans(std::size_t max_bytes, int max_plans) const;

  // Makes the pointers and workspace of a run; reusable as long as the arrays exist.
  static CudnnObject variant_pack(CudnnArrays const& arrays, void* workspace);
  void run(Plan const& plan, CudnnObject const& variant_pack) const;

 private:
  struct Candidate {
    Plan plan;
    std::string failure = {};  // why it cannot be finalized
  };

  CudnnObject tensor(std::int64_t id, Index const (&extents)[4], std::int64_t alignment) const;
  void describe_convolution() const;
  void describe_operation() const;
  bool allows(CudnnObject const& engine) const;
  // Nothing if it was seen before or is left out. Takes the configuration.
  std::optional<Candidate> candidate_of(CudnnObject& configuration, std::set<std::string>& seen,
                                        Plans& result) const;
  void finalize(Candidate& candidate) const;
  void add_plans(cudnn::HeuristicMode mode, std::size_t max_bytes, std::size_t max_plans,
                 std::set<std::string>& seen, Plans& result) const;

  cudnn::Context* context_;
  int ordinal_;
  CudnnConvolution asked_;
  CudnnObject const* device_;
  CudnnObject x_, w_, y_, convolution_, operation_, graph_;
};

}  // namespace cosmati::cli
