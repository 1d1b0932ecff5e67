#include <torch/extension.h>

torch::Tensor rotate_half(torch::Tensor x, torch::Tensor cos, torch::Tensor sin) {
  auto parts = x.chunk(2, -1);
  auto turned = torch::cat({-parts[1], parts[0]}, -1);
  return x * cos + turned * sin;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("rotate_half", &rotate_half, "rotary embedding"); }
